import { type Kind, kinds, textKinds } from "@tapedeck/shared/events/kinds";
import { code, table } from "./table.ts";

type Noun = Kind extends `${infer Name}.${string}` ? Name : never;

/** What the events of a noun are about. A new noun does not compile before it is here. */
const about: Readonly<Record<Noun, string>> = {
  source: "a recorded upstream; `checkpoint` repeats how far its channels are",
  session:
    "a lifetime of the upstream. `identified`: how it is recognized again. `labelled`: its labels or files changed. `described`: the upstream's own state. `lost`: recording has ended, and how the session ended was not observed. `gap`: something may be missing. `configured`, `terminated`: the upstream read its configuration, announced its end",
  init: "what Skaffold prepares: its runner, and the files to watch",
  loop: "one iteration of `skaffold dev`",
  build: "an artifact; `cached`: taken from the cache",
  test: "tests of an artifact",
  render: "rendering manifests",
  deploy: "deploying",
  verify: "`skaffold verify`",
  exec: "`skaffold exec`",
  check: "the status check after a deploy",
  resource: "a Kubernetes resource in the status check",
  sync: "copying changed files",
  port: "a forwarded port",
  debugger: "a debugged container",
  log: "what builds and applications print",
  inventory: "all that a host or server has; a reader can begin here",
  pod: "a rkt pod; `changed`: none of the other facts. `contradicted`: the host keeps contradicting the record",
  app: "an app of a rkt pod",
  image: "an image of a rkt host",
  job: "a job of a Vagrant server; the command of a `succeeded` job may have failed: see its outcome",
  command: "a Vagrant command",
  terminal: "what a Vagrant job prints",
  target: "a Vagrant machine",
  project: "a Vagrant project",
  basis: "a Vagrant basis",
  box: "a Vagrant box",
  runner: "a process that takes Vagrant jobs",
  control: "a call that changes an upstream",
  upstream: "the connection to the upstream; `unreadable`: bytes that this version can't read, kept",
  mirror: "a frame whose fact another channel has, kept to serve its channel again",
};

type KindsOfNoun = { readonly noun: string; readonly verbs: readonly string[]; readonly about: string };

/** Every kind of event, by its noun. */
export function kindsByNoun(): readonly KindsOfNoun[] {
  return [...new Set(kinds.map(nounOf))].map((noun) => {
    const ofNoun = kinds.filter((kind) => nounOf(kind) === noun);
    return { noun, verbs: ofNoun.map((kind) => kind.slice(noun.length + 1)), about: about[noun] };
  });
}

/** docs/kinds.md. */
export function kindsPage(): string {
  const rows = kindsByNoun().map(({ noun, verbs, about }) => [code(noun), verbs.map(code).join(", "), about]);
  return `${[
    "# Kinds of events",
    "<!-- Written from the code by `npm run docs`: change packages/shared/src/events/kinds.ts, not this page. -->",
    `A kind is \`<noun>.<verb>\`: \`build.failed\`. A filter takes \`build.*\` and \`*.failed\`, too. ${textKinds.map(code).join(" and ")} are
text: they never affect state, and may expire (\`retention.text\`). [The API](api.md) says what else an event has.`,
    table(["noun", "verbs", "about"], rows),
  ].join("\n\n")}\n`;
}

function nounOf(kind: Kind): Noun {
  return kind.slice(0, kind.indexOf(".")) as Noun;
}
