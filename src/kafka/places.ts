/** How many batches are in work. */
export interface Places {
  readonly taken: number;
  take(): Place;
}

/** A batch's place. */
export interface Place {
  /**
   * Lets another batch have the place while this one goes on: false where that was done already, or too often.
   * A batch that told outcomes before its end was split by a failure, and some of its keys wait for another try. Its
   * place goes to other keys, so that poison does not stop them.
   */
  cede(): boolean;
  leave(): void;
}

/**
 * @param cededMost - batches that may go on without a place at the same time
 */
export function places(cededMost: number): Places {
  let taken = 0;
  let ceded = 0;

  function take(): Place {
    let holds = true;
    taken += 1;
    return {
      cede: () => {
        if (!holds || ceded >= cededMost) return false;
        holds = false;
        taken -= 1;
        ceded += 1;
        return true;
      },
      leave: () => {
        if (holds) taken -= 1;
        else ceded -= 1;
      },
    };
  }

  return {
    get taken() {
      return taken;
    },
    take,
  };
}
