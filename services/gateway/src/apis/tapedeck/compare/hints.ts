import type { DifferenceKind } from "../schemas/comparison.ts";

/** The kinds of differences that may be behind an error's text. */
export type Hint = {
  readonly explains: readonly DifferenceKind[];
  /** It explains so where one of these failed; absent: of any. */
  readonly phases?: readonly string[];
  /** The settings that may be behind it, by the first part of their names; absent: those of the phase that failed. */
  readonly areas?: readonly string[];
  /** The text says all: no other difference is behind it. */
  readonly isWhole?: true;
  /** It describes how something failed, and not why. */
  readonly isVague?: true;
};

type Rule = Hint & { readonly pattern: RegExp };

/** The first that matches counts: what is more precise stands before what is less. */
const rules: readonly Rule[] = [
  {
    // The platform does not fit.
    pattern:
      /exec format error|no match(?:ing)?\b.*\bplatform|(?:match|provide) the specified platform|unsupported platform|wrong (?:CPU )?architecture/i,
    explains: ["platform"],
  },
  {
    // A registry refuses more pulls.
    pattern: /toomanyrequests|pull rate limit/i,
    explains: [],
    isWhole: true,
  },
  {
    // An image cannot be pulled.
    pattern:
      /ImagePullBackOff|ErrImage(?:Never)?Pull|not present with pull policy|InvalidImageName|pull access denied|manifest unknown|(?:failed|unable|can't|cannot)\b.{0,20}\bpull/i,
    // A cluster elsewhere does not have the images built on this machine.
    explains: ["command", "artifact", "configuration"],
  },
  {
    // A port is taken.
    pattern:
      /address already in use|\bport (?:to )?\d+\b.*\b(?:taken|in use|not available|allocated)|bind:.*(?:in use|denied)/i,
    explains: ["port"],
  },
  {
    // No space is left.
    pattern: /no space left on device|disk quota|DiskPressure|ephemeral.storage/i,
    explains: [],
    isWhole: true,
  },
  { pattern: /OOMKilled|out of memory|signal: killed|exit (?:code|status) 137/i, explains: [] },
  {
    // No node has room.
    pattern: /unschedulable|Insufficient (?:cpu|memory)|nodes are available|didn't match .*(?:affinity|selector)/i,
    explains: ["configuration"],
  },
  {
    // A ConfigMap or Secret is missing.
    pattern: /CreateContainerConfigError|(?:configmaps?|secrets?) "[^"]*" not found/i,
    explains: ["label", "command"],
  },
  {
    // This version does not know it.
    pattern:
      /unknown (?:flag|command|field|shorthand|[\w ]{0,30}version)|unsupported (?:version|api|schema)|requires? (?:skaffold|vagrant|version|at least)|\bor (?:newer|later|higher)\b|invalid apiVersion|upgrade (?:to|skaffold)|no longer supported/i,
    explains: ["version", "command"],
  },
  {
    // A plugin does not fit this version.
    pattern: /undefined method .+ for |uninitialized constant|wrong number of arguments \(given|cannot load such file/i,
    explains: ["version"],
    // In other phases, it is the code of the application.
    phases: ["command"],
  },
  {
    // A plugin is missing.
    pattern:
      /unknown configuration section|the provider '[^']*' could not be found|provisioner '[^']*' could not be found/i,
    explains: ["command"],
  },
  {
    // The system is of another release.
    pattern:
      /externally-managed-environment|unable to locate package|has no installation candidate|does not have a Release file|GLIBC\w*_[\d.]+'? not found/i,
    explains: ["configuration"],
    areas: ["box"],
  },
  {
    // The cluster refuses the manifest.
    pattern: /error validating|no matches for kind|error parsing|unable to recognize|is invalid:|admission webhook/i,
    explains: ["configuration"],
  },
  {
    // Access is denied.
    pattern:
      /\bforbidden\b|unauthorized|permission denied|access (?:[\w\s]{1,30})?denied|authentication required|x509:/i,
    explains: ["label", "configuration"],
  },
  {
    // Nothing listens on this machine.
    pattern:
      /(?:refused|ECONNREFUSED)\b.*(?:127\.0\.0\.1|localhost|\[::1\])|(?:127\.0\.0\.1|localhost|\[::1\]).*refused/i,
    explains: ["resource"],
  },
  {
    // Something does not answer.
    pattern:
      /connection refused|no such host|host not found|no route to host|i\/o timeout|TLS handshake|dial tcp|could not (?:resolve|translate host)|name resolution|name or service not known|network is unreachable|ECONNREFUSED|EHOSTUNREACH|ENOTFOUND/i,
    explains: ["configuration", "label", "resource", "artifact"],
  },
  {
    // A program is missing.
    pattern: /executable file not found|command not found/i,
    // Arguments choose what is installed.
    explains: ["configuration", "command"],
  },
  {
    // The guest lacks a driver.
    pattern: /guest additions|unknown filesystem type/i,
    explains: ["configuration"],
  },
  {
    // A file is missing.
    pattern: /no such file|file not found|cannot find|failed to compute cache key|COPY failed|unable to stat/i,
    explains: ["configuration", "artifact"],
  },
  {
    // It took too long.
    pattern: /deadline exceeded|exceeded its progress deadline|timed out|could not stabilize|DEADLINE/i,
    explains: ["duration"],
    isVague: true,
  },
  {
    // A container crashes.
    pattern: /CrashLoopBackOff|back-off restarting|container .*(?:terminated|crash)/i,
    explains: [],
  },
  {
    // The code does not compile.
    pattern: /syntax error|cannot find module|undefined:|error TS\d+|compilation (?:failed|error)|SyntaxError/i,
    explains: [],
  },
];

/** Later parts of a text are a stack trace, and patterns take their time. */
const maxRead = 2_000;

export function hintOf(text: string): Hint | undefined {
  const read = text.slice(0, maxRead);
  return rules.find(({ pattern }) => pattern.test(read));
}

/** Texts that only report that something failed. */
const empty =
  /^(?:.*\b(?:exit (?:status|code):?|exited(?: with)?|non-zero code:?) -?\d+|.*\bnon-zero exit (?:status|code)\b\.?|.*\d+\/\d+ (?:deployment|resource)\(s\) failed|.*context canceled|.*\bfailed\b\.?|.*does not build|FAIL(?:\s+\S+\s+[\d.]+m?s)?|unknown error|no)?$/i;

export function isTelling(text: string): boolean {
  return (
    hintOf(text) !== undefined ||
    text
      .slice(0, maxRead)
      .split("\n")
      .some((line) => !empty.test(line.trim()))
  );
}
