// The load generator, a process of its own.
import { serve } from "../rpc.mjs";
import { runRace } from "./race.mjs";
import { runLoad } from "./run.mjs";

serve({ run: runLoad, race: runRace });
