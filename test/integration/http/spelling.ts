import fc from "fast-check";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Names that parsers and objects of JavaScript treat in ways of their own. */
const names = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("a", "b", "pipe", "__proto__", "toJSON", "constructor", "1", "\u0000", "é", "e\u0301"),
);
const numbers = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, -0, 1e21, 0.1, 5e-324),
);

const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, false),
    numbers,
    fc.string({ unit: "binary" }),
    fc.array(tie("json"), { maxLength: 4 }),
    fc.dictionary(names, tie("json"), { maxKeys: 4 }),
  ),
}));

/** One way of many to write a value as JSON text; each choice is a number, used in turn. */
function spell(value: Json, choose: () => number): string {
  const space = [" ", "", "\n", "\t"][choose() % 4] ?? "";
  if (typeof value === "number") return space + spellNumber(value, choose());
  if (typeof value === "string") return space + spellString(value, choose());
  if (typeof value !== "object" || value === null) return space + String(value) + space;
  if (Array.isArray(value)) return `[${value.map((each) => spell(each, choose)).join(`${space},`)}]`;
  const entries = Object.entries(value);
  const turned = choose() % 2 === 0 ? entries : entries.toReversed();
  const members = turned.map(([name, member]) => `${spellString(name, choose())}:${spell(member, choose)}`);
  const [first] = turned;
  // An earlier member of the same name, which every parser forgets.
  if (first !== undefined && choose() % 4 === 0) members.unshift(`${JSON.stringify(first[0])}:"forgotten"`);
  return `{${members.join(`,${space}`)}}`;
}

function spellNumber(value: number, choice: number): string {
  if (Object.is(value, -0)) return ["-0", "0", "-0.0"][choice % 3] ?? "0";
  const text = String(value);
  if (choice % 3 === 1 && Number.isInteger(value) && !text.includes("e")) return `${text}.0`;
  return choice % 3 === 2 && !text.includes("e") ? `${text}e0` : text;
}

function spellString(value: string, choice: number): string {
  if (choice % 2 === 0) return JSON.stringify(value);
  const units = Array.from({ length: value.length }, (_, i) =>
    // oxlint-disable-next-line unicorn/prefer-code-point -- JSON escapes UTF-16 units
    value.charCodeAt(i).toString(16).padStart(4, "0"),
  );
  return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
}

const spelled = (value: Json): fc.Arbitrary<string> =>
  fc.infiniteStream(fc.nat(11)).map((choices) => spell(value, () => Number(choices.next().value)));

/** Texts that no value writes. */
const odd = fc.constantFrom(
  "",
  "{",
  '"\\ud800"',
  '{"a":1,"a":2}',
  '{"a":9007199254740991}',
  '{"a":9007199254740992}',
  '{"a":9007199254740993}',
  '{"a":123456789012345678901234567890}',
  "1e400",
  "-1e400",
  `${"[".repeat(100)}${"]".repeat(100)}`,
  `${"[".repeat(101)}${"]".repeat(101)}`,
  `${'{"a":'.repeat(3000)}1${"}".repeat(3000)}`,
);
const absent = fc.constant(undefined);

/** A command, and another that may be the same in other words. `undefined` is a request without a body. */
export const pairs: fc.Arbitrary<readonly [string | undefined, string | undefined]> = fc.oneof(
  { weight: 4, arbitrary: json.chain((value) => fc.tuple(spelled(value), spelled(value))) },
  { weight: 2, arbitrary: fc.tuple(json.chain(spelled), json.chain(spelled)) },
  { weight: 2, arbitrary: fc.tuple(fc.oneof(odd, absent), fc.oneof(odd, absent, json.chain(spelled))) },
);
