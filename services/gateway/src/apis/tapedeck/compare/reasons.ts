import type { DifferenceKind } from "../schemas/comparison.ts";

/** The meaning of an error's text, and the kinds of differences that may be behind it. */
export type Reason = {
  readonly name: string;
  readonly explains: readonly DifferenceKind[];
  /** It explains so where one of these failed; absent: of any. */
  readonly phases?: readonly string[];
  /** The settings that may be behind it, by the first part of their names; absent: those of the phase that failed. */
  readonly areas?: readonly string[];
  /** The reason is complete: no other difference is behind it. */
  readonly isWhole?: true;
  /** It describes how something failed, and not why. */
  readonly isVague?: true;
};

type Rule = Reason & { readonly pattern: RegExp };

/** The first that matches counts: what is more precise stands before what is less. */
const rules: readonly Rule[] = [
  {
    name: "the platform does not fit",
    pattern:
      /exec format error|no match(?:ing)?\b.*\bplatform|(?:match|provide) the specified platform|unsupported platform|wrong (?:CPU )?architecture/i,
    explains: ["platform"],
  },
  {
    name: "a registry refuses more pulls",
    pattern: /toomanyrequests|pull rate limit/i,
    explains: [],
    isWhole: true,
  },
  {
    name: "an image cannot be pulled",
    pattern:
      /ImagePullBackOff|ErrImage(?:Never)?Pull|not present with pull policy|InvalidImageName|pull access denied|manifest unknown|(?:failed|unable|can't|cannot)\b.{0,20}\bpull/i,
    // A cluster elsewhere does not have the images built on this machine.
    explains: ["command", "artifact", "configuration"],
  },
  {
    name: "a port is taken",
    pattern:
      /address already in use|\bport (?:to )?\d+\b.*\b(?:taken|in use|not available|allocated)|bind:.*(?:in use|denied)/i,
    explains: ["port"],
  },
  {
    name: "no space is left",
    pattern: /no space left on device|disk quota|DiskPressure|ephemeral.storage/i,
    explains: [],
    isWhole: true,
  },
  { name: "memory ran out", pattern: /OOMKilled|out of memory|signal: killed|exit (?:code|status) 137/i, explains: [] },
  {
    name: "no node has room",
    pattern: /unschedulable|Insufficient (?:cpu|memory)|nodes are available|didn't match .*(?:affinity|selector)/i,
    explains: ["configuration"],
  },
  {
    name: "a ConfigMap or Secret is missing",
    pattern: /CreateContainerConfigError|(?:configmaps?|secrets?) "[^"]*" not found/i,
    explains: ["label", "command"],
  },
  {
    name: "this version does not know it",
    pattern:
      /unknown (?:flag|command|field|shorthand|[\w ]{0,30}version)|unsupported (?:version|api|schema)|requires? (?:skaffold|vagrant|version|at least)|\bor (?:newer|later|higher)\b|invalid apiVersion|upgrade (?:to|skaffold)|no longer supported/i,
    explains: ["version", "command"],
  },
  {
    name: "a plugin does not fit this version",
    pattern: /undefined method .+ for |uninitialized constant|wrong number of arguments \(given|cannot load such file/i,
    explains: ["version"],
    // In other phases, it is the code of the application.
    phases: ["command"],
  },
  {
    name: "a plugin is missing",
    pattern:
      /unknown configuration section|the provider '[^']*' could not be found|provisioner '[^']*' could not be found/i,
    explains: ["command"],
  },
  {
    name: "the system is of another release",
    pattern:
      /externally-managed-environment|unable to locate package|has no installation candidate|does not have a Release file|GLIBC\w*_[\d.]+'? not found/i,
    explains: ["configuration"],
    areas: ["box"],
  },
  {
    name: "the cluster refuses the manifest",
    pattern: /error validating|no matches for kind|error parsing|unable to recognize|is invalid:|admission webhook/i,
    explains: ["configuration"],
  },
  {
    name: "access is denied",
    pattern:
      /\bforbidden\b|unauthorized|permission denied|access (?:[\w\s]{1,30})?denied|authentication required|x509:/i,
    explains: ["label", "configuration"],
  },
  {
    name: "nothing listens on this machine",
    pattern:
      /(?:refused|ECONNREFUSED)\b.*(?:127\.0\.0\.1|localhost|\[::1\])|(?:127\.0\.0\.1|localhost|\[::1\]).*refused/i,
    explains: ["resource"],
  },
  {
    name: "something does not answer",
    pattern:
      /connection refused|no such host|host not found|no route to host|i\/o timeout|TLS handshake|dial tcp|could not (?:resolve|translate host)|name resolution|name or service not known|network is unreachable|ECONNREFUSED|EHOSTUNREACH|ENOTFOUND/i,
    explains: ["configuration", "label", "resource", "artifact"],
  },
  {
    name: "a program is missing",
    pattern: /executable file not found|command not found/i,
    // Arguments choose what is installed.
    explains: ["configuration", "command"],
  },
  {
    name: "the guest lacks a driver",
    pattern: /guest additions|unknown filesystem type/i,
    explains: ["configuration"],
  },
  {
    name: "a file is missing",
    pattern: /no such file|file not found|cannot find|failed to compute cache key|COPY failed|unable to stat/i,
    explains: ["configuration", "artifact"],
  },
  {
    name: "it took too long",
    pattern: /deadline exceeded|exceeded its progress deadline|timed out|could not stabilize|DEADLINE/i,
    explains: ["duration"],
    isVague: true,
  },
  {
    name: "a container crashes",
    pattern: /CrashLoopBackOff|back-off restarting|container .*(?:terminated|crash)/i,
    explains: [],
  },
  {
    name: "the code does not compile",
    pattern: /syntax error|cannot find module|undefined:|error TS\d+|compilation (?:failed|error)|SyntaxError/i,
    explains: [],
  },
];

/** Later parts of a text are a stack trace, and patterns take their time. */
const maxRead = 2_000;

export function reasonOf(text: string): Reason | undefined {
  const read = text.slice(0, maxRead);
  return rules.find(({ pattern }) => pattern.test(read));
}

/** Texts that only report that something failed. */
const empty =
  /^(?:.*\b(?:exit (?:status|code):?|exited(?: with)?|non-zero code:?) -?\d+|.*\bnon-zero exit (?:status|code)\b\.?|.*\d+\/\d+ (?:deployment|resource)\(s\) failed|.*context canceled|.*\bfailed\b\.?|.*does not build|unknown error|no)?$/i;

export function isTelling(text: string): boolean {
  return (
    reasonOf(text) !== undefined ||
    text
      .slice(0, maxRead)
      .split("\n")
      .some((line) => !empty.test(line.trim()))
  );
}

const errorPattern = /\b(?:\w*error|\w*exception|fatal|panic|denied|refused|not found|unable to|cannot|can't)\b/i;

/**
 * The most informative line of a text: one with a known reason, one that looks like an error, or the first that is not
 * empty.
 */
export function tellingText(text: string): string {
  const lines = text
    .slice(0, maxRead)
    .split("\n")
    .map(bare)
    .filter((line) => line !== "");
  return (
    lines.find((line) => reasonOf(line) !== undefined) ??
    lines.find((line) => errorPattern.test(line) && isTelling(line)) ??
    lines.find(isTelling) ??
    lines[0] ??
    ""
  );
}

/** Skaffold quotes the output of commands: ` - stderr: "error: …\n"`. */
function bare(line: string): string {
  const quoted = /^-? ?(?:stdout|stderr): "(?<said>.*)"$/.exec(line.trim())?.groups?.said;
  if (quoted === undefined) return line.trim();
  return quoted
    .replace(/\\n/g, " ")
    .replace(/\\(["\\])/g, "$1")
    .trim();
}

/** The text without what is another in each run: times, ids, addresses, colours. */
export function sameText(text: string): string {
  return text
    .slice(0, maxRead)
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, "#")
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b/gi, "#")
    .replace(/-(?=[a-z]*\d)[a-z0-9]{5}\b/g, "-#")
    .replace(/\d+(?:\.\d+)?(?:ms|s|m)\b/g, "#")
    .replace(/\s+/g, " ")
    .trim();
}
