import { ownValue } from "@tapedeck/shared/own-value";

/** A version of a box: "1.0.282", "20230615.0.0", "2.0.0-rc1". */
export type Version = { readonly numbers: readonly bigint[]; readonly pre: string };

const shape =
  /^v?(\d+(?:\.\d+)*)(?:(?:-|[-.]?(?=[A-Za-z]))([0-9A-Za-z]+(?:[.~-][0-9A-Za-z]+)*))?(?:\+[0-9A-Za-z.~-]+)?$/;

/** Undefined for text that is not a version. Ignores a leading "v" and build metadata ("+…"). */
export function parseVersion(text: string): Version | undefined {
  const [, numbers, pre = ""] = shape.exec(text) ?? [];
  return numbers === undefined ? undefined : { numbers: numbers.split(".").map(BigInt), pre };
}

/** Below zero: `a` is older. A pre-release is older than its release; pre-releases compare part by part. */
export function compareVersions(a: Version, b: Version): number {
  const order = compareNumbers(a.numbers, b.numbers);
  if (order !== 0 || a.pre === b.pre) return order;
  if (a.pre === "" || b.pre === "") return a.pre === "" ? 1 : -1;
  return a.pre.localeCompare(b.pre, "en", { numeric: true });
}

/** Whether a version fulfils a condition such as ">= 1.2, < 2". */
export type VersionCondition = (version: Version) => boolean;

/**
 * Vagrant's conditions: `=` (or nothing), `!=`, `>`, `>=`, `<`, `<=`, `~>`, several separated by commas. A pre-release
 * fulfils only a condition that names a pre-release of the same numbers. Undefined for text that is not a condition.
 */
export function parseCondition(text: string): VersionCondition | undefined {
  const parts = text.split(",").map(parsePart);
  const known = parts.filter((part) => part !== undefined);
  return known.length < parts.length ? undefined : (version) => known.every((fits) => fits(version));
}

function parsePart(text: string): VersionCondition | undefined {
  const [, operator = "", rest = ""] = /^(=|!=|>=|<=|~>|>|<|)\s*(\S+)$/.exec(text.trim()) ?? [];
  const supported = parseVersion(rest);
  const test = ownValue(tests, operator);
  if (supported === undefined || test === undefined) return undefined;
  return (version) => {
    if (!exact.has(operator) && version.pre !== "") {
      if (supported.pre === "" || compareNumbers(version.numbers, supported.numbers) !== 0) return false;
    }
    return test(compareVersions(version, supported), version, supported);
  };
}

const exact: ReadonlySet<string> = new Set(["", "=", "!="]);

const tests: Readonly<Record<string, (order: number, version: Version, supported: Version) => boolean>> = {
  "": (order) => order === 0,
  "=": (order) => order === 0,
  "!=": (order) => order !== 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  // "~> 1.2.3" means at least 1.2.3 and below 1.3: only the last number may grow.
  "~>": (order, { numbers }, supported) => {
    const expected = supported.numbers.slice(0, Math.max(1, supported.numbers.length - 1));
    return order >= 0 && expected.every((number, index) => (numbers[index] ?? 0n) === number);
  },
};

/** Missing numbers are zero. */
function compareNumbers(a: readonly bigint[], b: readonly bigint[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [one = 0n, other = 0n] = [a[index], b[index]];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}
