/** Of a box: "1.0.282", "20230615.0.0", "2.0.0-rc1". */
export type Version = { readonly numbers: readonly bigint[]; readonly pre: string };

const shape =
  /^v?(\d+(?:\.\d+)*)(?:(?:-|[-.]?(?=[A-Za-z]))([0-9A-Za-z]+(?:[.~-][0-9A-Za-z]+)*))?(?:\+[0-9A-Za-z.~-]+)?$/;

/** Undefined for what is no version. A leading "v" and build metadata ("+…") count for nothing. */
export function parseVersion(text: string): Version | undefined {
  const [, numbers, pre = ""] = shape.exec(text) ?? [];
  return numbers === undefined ? undefined : { numbers: numbers.split(".").map(BigInt), pre };
}

/** Below zero: `a` is older. A pre-release is older than what it leads to; pre-releases go by their parts. */
export function compareVersions(a: Version, b: Version): number {
  const order = compareNumbers(a.numbers, b.numbers);
  if (order !== 0 || a.pre === b.pre) return order;
  if (a.pre === "" || b.pre === "") return a.pre === "" ? 1 : -1;
  return a.pre.localeCompare(b.pre, "en", { numeric: true });
}

/** Says whether a version is one of those that a condition such as ">= 1.2, < 2" means. */
export type Condition = (version: Version) => boolean;

/**
 * Conditions as Vagrant has them: `=` (or nothing), `!=`, `>`, `>=`, `<`, `<=`, `~>`, several with commas between them.
 * A pre-release is only meant by a condition that names one of the same numbers. Undefined for what is no condition.
 */
export function parseCondition(text: string): Condition | undefined {
  const parts = text.split(",").map(parsePart);
  const known = parts.filter((part) => part !== undefined);
  return known.length < parts.length ? undefined : (version) => known.every((fits) => fits(version));
}

function parsePart(text: string): Condition | undefined {
  const [, operator = "", rest = ""] = /^\s*(=|!=|>=|<=|~>|>|<|)\s*(\S+)\s*$/.exec(text) ?? [];
  const wanted = parseVersion(rest);
  const test = tests[operator];
  if (wanted === undefined || test === undefined) return undefined;
  return (version) => {
    if (!exact.has(operator) && version.pre !== "") {
      if (wanted.pre === "" || compareNumbers(version.numbers, wanted.numbers) !== 0) return false;
    }
    return test(compareVersions(version, wanted), version, wanted);
  };
}

const exact: ReadonlySet<string> = new Set(["", "=", "!="]);

const tests: Readonly<Record<string, (order: number, version: Version, wanted: Version) => boolean>> = {
  "": (order) => order === 0,
  "=": (order) => order === 0,
  "!=": (order) => order !== 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  // "~> 1.2.3" means from 1.2.3 on, but not 1.3: all but the last number stay as they are.
  "~>": (order, { numbers }, wanted) => {
    const kept = wanted.numbers.slice(0, Math.max(1, wanted.numbers.length - 1));
    return order >= 0 && kept.every((number, index) => (numbers[index] ?? 0n) === number);
  },
};

/** Numbers that are not there are zero. */
function compareNumbers(a: readonly bigint[], b: readonly bigint[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [one = 0n, other = 0n] = [a[index], b[index]];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}
