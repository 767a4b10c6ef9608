import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { rktSession, uuid } from "@tapedeck/query/testing/rkt-scenario";
import { type Scenario, scenario } from "@tapedeck/query/testing/scenario";
import { ulid, vagrantSession } from "@tapedeck/query/testing/vagrant-scenario";
import { sourceName } from "@tapedeck/shared/source";

/** A text that everything recorded in a workspace contains, and no request does. */
export const markOf = (workspace: string) => `hush-${workspace}`;

/** Ids that both workspaces have, so that mixing them up has a visible result. */
export const both = { pod: uuid(1), job: ulid(1), resource: "P1" };

/** Ids that only one workspace has. */
export const only = {
  acme: { session: "01KABC0000000000000000ACME", pod: uuid(2), job: ulid(2), image: "sha512-acme", box: "acme/box" },
  globex: { session: "01KABC0000000000000000BEX0", pod: uuid(3), job: ulid(3), image: "sha512-bex", box: "bex/box" },
} as const;

export type WorkspaceName = keyof typeof only;

/** The same project with all upstreams, and one of each resource that an upstream can have. `place`: where it is recorded. */
export function workspaceScenario(
  name: WorkspaceName,
  place: { readonly workspace: string; readonly developer: string } = { workspace: name, developer: "alice" },
) {
  const mark = markOf(name);
  const { session, ...ids } = only[name];
  const of = (upstream: string) => scenario(sourceName({ ...place, project: "shop", upstream }));
  const [shop, host, machines] = [of("skaffold"), of("rkt"), of("vagrant")];
  const alice = { developer_name: `${place.developer} ${mark}`, project_name: mark };
  for (const script of [shop, host, machines]) {
    script.add({ kind: "source.added", detail: { $case: "source_detail", value: alice } });
  }

  const dev = shop.session(session);
  dev.started({ branch: mark });
  dev.configured();
  const fail = () => {
    dev.loopStarted();
    dev.build(mark, "started");
    dev.build(mark, "failed");
    dev.loopEnded("failed");
  };
  fail();
  dev.loopStarted();
  dev.loopEnded("succeeded");
  fail();
  dev.text(mark);
  logOf(shop, session, mark);

  const pods = rktSession(rktSessionOf(session), host);
  pods.began(`/var/lib/${mark}`);
  for (const id of [both.pod, ids.pod]) {
    pods.prepared(id, [mark]);
    pods.started(id);
    pods.text(id, mark);
  }
  pods.imported({ id: ids.image, name: mark });
  pods.imported({ id: "sha512-both", name: mark });

  const server = vagrantSession(vagrantSessionOf(session), machines);
  server.began(mark);
  server.reported("basis", both.resource, { name: mark });
  server.reported("project", both.resource, { name: mark, basis: { resource_id: both.resource, name: mark } });
  server.reported("target", both.resource, { name: mark, project: { resource_id: both.resource, name: mark } });
  server.reported("box", ids.box, { name: ids.box, directory: mark });
  server.reported("runner", both.resource, { components: [{ name: mark }] });
  for (const job of [both.job, ids.job]) {
    server.queued(job, mark);
    server.started(job);
    server.text(job, mark);
  }
  return {
    mark,
    session,
    events: [...shop.events, ...host.events, ...machines.events],
    /** Further events of each upstream that contain `hush-<workspace>-more`. */
    more() {
      const before = [shop, host, machines].map(({ events }) => events.length);
      const next = `${mark}-more`;
      dev.build(next, "started");
      dev.text(next);
      logOf(shop, session, next);
      const pod = uuid(name === "acme" ? 4 : 5);
      pods.prepared(pod, [next]);
      pods.started(pod);
      pods.text(both.pod, next);
      server.text(both.job, next, 1n);
      return [shop, host, machines].flatMap(({ events }, at) => events.slice(before[at]));
    },
  };
}

export const rktSessionOf = (session: string) => session.replace(/.$/, "R");
export const vagrantSessionOf = (session: string) => session.replace(/.$/, "V");

function logOf({ add }: Scenario, session: string, text: string): void {
  const event = V2Event.fromPartial({ event_type: { $case: "applicationLogEvent", value: { message: text } } });
  const bytes = Buffer.from(V2Event.encode(event).finish());
  const original = { type: "proto.v2.Event", bytes, size: BigInt(bytes.length) };
  add({ session, channel: "logs", kind: "log.written", detail: { $case: "text", value: { text } }, original });
}

/** Whether the text is somewhere in the bytes, as it is or in base64. */
export function holds(bytes: Uint8Array | string, text: string): boolean {
  const all = Buffer.from(bytes);
  // The bytes before it shift its base64 form, and its first and last characters depend on its neighbours.
  const coded = [0, 1, 2].map((shift) =>
    Buffer.from(`${"-".repeat(shift)}${text}`)
      .toString("base64")
      .slice(shift === 0 ? 0 : shift + 1, -4),
  );
  return [text, ...coded].some((form) => all.includes(form));
}

/**
 * An encoded request with this text in every field that can hold it; for each `oneof` the member that `pick` selects.
 * It is empty without a text.
 */
export function filled(desc: DescMessage, text: string, pick: number, depth = 0): Uint8Array {
  const writer = new BinaryWriter();
  if (text === "") return writer.finish();
  for (const member of desc.members) {
    const field = member.kind === "oneof" ? member.fields[pick % member.fields.length] : member;
    if (field?.scalar === ScalarType.STRING) writer.tag(field.number, WireType.LengthDelimited).string(text);
    else if (field?.message !== undefined && field.fieldKind !== "map" && depth < 3) {
      const inner = filled(field.message, text, pick, depth + 1);
      writer.tag(field.number, WireType.LengthDelimited).bytes(inner);
    }
  }
  return writer.finish();
}
