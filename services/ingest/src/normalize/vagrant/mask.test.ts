import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import { Any } from "@tapedeck/proto/google/protobuf/any";
import { LocalizedMessage } from "@tapedeck/proto/google/rpc/error_details";
import { Args_Hash, Command_Arguments } from "@tapedeck/proto/vagrant/sdk/sdk";
import {
  Box,
  GetJobStreamResponse,
  Job,
  Project,
  Target,
  Target_Machine,
  GetJobStreamResponse_Terminal_Event as TerminalEvent,
} from "@tapedeck/proto/vagrant/vagrant";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mask } from "./mask.ts";

const token = `ghp_${"a".repeat(36)}`;
const stars = (secret: string) => "*".repeat(Buffer.byteLength(secret));
const any = (type: string, value: Uint8Array) => ({
  type_url: `type.googleapis.com/${type}`,
  value: Buffer.from(value),
});
const string = (value: string) =>
  any("google.protobuf.StringValue", toBinary(StringValueSchema, create(StringValueSchema, { value })));
/** Encoded as a string, but of a type that only Ruby knows. */
const symbol = (value: string) => ({
  ...string(value),
  type_url: "type.googleapis.com/hashicorp.vagrant.sdk.Args.Symbol",
});
const hash = (...entries: readonly (readonly [key: ReturnType<typeof any>, value: ReturnType<typeof any>])[]) =>
  Args_Hash.fromPartial({ entries: entries.map(([key, value]) => ({ key, value })) });
/** A message with these in its fields. */
const message = (...fields: readonly (readonly [number: number, value: ReturnType<typeof any> | Uint8Array])[]) => {
  const writer = new BinaryWriter();
  for (const [number, value] of fields) {
    const bytes = value instanceof Uint8Array ? value : Any.encode(Any.fromPartial(value)).finish();
    writer.uint32(number * 8 + 2).bytes(bytes);
  }
  return writer.finish();
};
const entry = (key: ReturnType<typeof any>, value: ReturnType<typeof any>) => message([1, key], [2, value]);
/** Ruby's instances of any class: `Args.Class source = 1; Args.Hash data = 2`. */
const raw = (name: string, ...entries: readonly Uint8Array[]) =>
  any(
    "hashicorp.vagrant.sdk.Config.RawRubyValue",
    message([1, message([1, Buffer.from(name)])], [2, message(...entries.map((one) => [1, one] as const))]),
  );
const packed = (value: Args_Hash) => any("hashicorp.vagrant.sdk.Args.Hash", Args_Hash.encode(value).finish());

/** A Ruby array: `repeated google.protobuf.Any list = 1`. */
const array = (...list: readonly ReturnType<typeof any>[]) =>
  any(
    "hashicorp.vagrant.sdk.Args.Array",
    Buffer.concat(
      list.map((one) => {
        const bytes = Any.encode(Any.fromPartial(one)).finish();
        return new BinaryWriter().uint32(10).bytes(bytes).finish();
      }),
    ),
  );

type Codec<T> = {
  readonly encode: (message: T) => { finish: () => Uint8Array };
  readonly decode: (bytes: Uint8Array) => T;
};

/** The message after masking, which must take as many bytes as before. */
function masked<T>(type: string, codec: Codec<T>, message: T): { readonly redacted: number; readonly message: T } {
  const bytes = codec.encode(message).finish();
  const { bytes: after, redacted } = mask(type, bytes);
  expect(after).toHaveLength(bytes.length);
  expect(mask(type, after)).toEqual({ bytes: after, redacted: 0 });
  return { redacted, message: codec.decode(after) };
}

const type = "hashicorp.vagrant.GetJobStreamResponse.Terminal.Event";
const eventOf = TerminalEvent.fromPartial.bind(TerminalEvent);

describe("the output of a command", () => {
  it.each([
    { event: eventOf({ event: { $case: "line", value: { msg: `==> web1: uses ${token}` } } }), secret: token },
    {
      event: eventOf({ event: { $case: "line", value: { msg: "DB_PASSWORD=hünter2", style: "info" } } }),
      secret: "hünter2",
    },
    { event: eventOf({ event: { $case: "status", value: { msg: `with ${token}` } } }), secret: token },
    {
      event: eventOf({ event: { $case: "raw", value: { data: Buffer.from("\0\xffPASSWORD=hunter2\n", "latin1") } } }),
      secret: "hunter2",
    },
    {
      event: eventOf({ event: { $case: "step", value: { id: 1, output: Buffer.from("API_KEY=abc123\r\n") } } }),
      secret: "abc123",
    },
    {
      event: eventOf({ event: { $case: "table", value: { rows: [{ entries: [{ value: "TOKEN=abc" }] }] } } }),
      secret: "abc",
    },
  ])("is masked in a $event.event.$case", ({ event, secret }) => {
    const latin1 = (text: string | Uint8Array) => Buffer.from(text).toString("latin1");
    const before = latin1(TerminalEvent.encode(event).finish());
    const { redacted, message } = masked(type, TerminalEvent, event);
    expect(redacted).toBe(1);
    expect(latin1(TerminalEvent.encode(message).finish())).toBe(before.replace(latin1(secret), stars(secret)));
  });

  it("is masked in named values by their names", () => {
    const values = [
      { name: "admin password", value: "hunter 2" },
      { name: "user", value: "bob" },
    ];
    const event = eventOf({ event: { $case: "named_values", value: { values } } });
    const { redacted, message } = masked(type, TerminalEvent, event);
    expect(redacted).toBe(1);
    expect(message.event?.value).toMatchObject({ values: [{ value: "********" }, { value: "bob" }] });
  });

  it("is masked in the messages of a stream, many at once", () => {
    const line = (msg: string) => ({ event: { $case: "line" as const, value: { msg } } });
    const response = GetJobStreamResponse.fromPartial({
      event: { $case: "terminal", value: { events: [line("PASSWORD=a1"), line("fine"), line("PASSWORD=b2")] } },
    });
    const { redacted, message } = masked("hashicorp.vagrant.GetJobStreamResponse", GetJobStreamResponse, response);
    expect(redacted).toBe(2);
    expect(message.event?.value).toMatchObject({ events: [line("PASSWORD=**"), line("fine"), line("PASSWORD=**")] });
  });
});

describe("a job", () => {
  it("has no secrets in the words and flags of its command", () => {
    const job = Job.fromPartial({
      id: "01M7WSXR48CPWGKTFSQAMTA7T9",
      labels: { "db-password": "hunter2", tier: "gold" },
      operation: {
        $case: "command",
        value: {
          command: "up",
          cli_args: {
            args: ["web1", "--api-key", "abc", "--token=def", "--password"],
            flags: [
              { name: "password", value: { $case: "string", value: "hunter2" } },
              { name: "provider", value: { $case: "string", value: "virtualbox" } },
              { name: "token", value: { $case: "bool", value: true }, type: 1 },
            ],
          },
        },
      },
    });
    const { redacted, message } = masked("hashicorp.vagrant.Job", Job, job);
    expect(redacted).toBe(4);
    expect(message.labels).toEqual({ "db-password": "*******", tier: "gold" });
    expect(message.operation?.value).toMatchObject({
      cli_args: {
        args: ["web1", "--api-key", "***", "--token=***", "--password"],
        flags: [{ value: { value: "*******" } }, { value: { value: "virtualbox" } }, { value: { value: true } }],
      },
    });
  });

  it("has none in its errors, nor in what is packed in them", () => {
    const text = { locale: "en-US", message: "box needs PASSWORD=hunter2" };
    const details = [
      any("google.rpc.LocalizedMessage", LocalizedMessage.encode(LocalizedMessage.fromPartial(text)).finish()),
    ];
    const job = Job.fromPartial({ result: { run: { run_error: { code: 2, message: "PASSWORD=hunter2", details } } } });
    const { redacted, message } = masked("hashicorp.vagrant.Job", Job, job);
    expect(redacted).toBe(2);
    const error = message.result?.run?.run_error;
    expect(error?.message).toBe("PASSWORD=*******");
    expect(LocalizedMessage.decode(error?.details[0]?.value ?? Buffer.alloc(0)).message).toBe(
      "box needs PASSWORD=*******",
    );
  });
});

describe("a resource", () => {
  it("has none in its record, its metadata and its address", () => {
    const machine = Target_Machine.fromPartial({ id: "4f1d", state: { long_description: `waits, TOKEN=abc` } });
    const target = Target.fromPartial({
      metadata: { metadata: { password: "abc" } },
      record: any("hashicorp.vagrant.Target.Machine", Target_Machine.encode(machine).finish()),
    });
    const { redacted, message } = masked("hashicorp.vagrant.Target", Target, target);
    expect(redacted).toBe(2);
    expect(message.metadata?.metadata).toEqual({ password: "***" });
    expect(Target_Machine.decode(message.record?.value ?? Buffer.alloc(0)).state?.long_description).toBe(
      "waits, TOKEN=***",
    );
    const box = Box.fromPartial({
      metadata: { password: "abc", of: "b" },
      metadata_url: "https://bob:hunter2@h/box.json",
    });
    expect(masked("hashicorp.vagrant.Box", Box, box)).toMatchObject({
      redacted: 2,
      message: { metadata: { password: "***", of: "b" }, metadata_url: "https://bob:*******@h/box.json" },
    });
  });

  it("has none in its Vagrantfile, however deep, by the keys of its hashes", () => {
    const configuration = (one: string, other: string, third: string) => ({
      raw: Buffer.from(`config.vm.provision "shell", env: {"DB_PASSWORD" => "${one}"}`),
      unfinalized: hash(
        [symbol("password"), string(other)],
        [string("user"), string("bob")],
        [string(`uses TOKEN=${third} here`), string("bob")],
        [string("inner"), packed(hash([string("apiKey"), string(third)], [symbol("list"), packed(hash())]))],
      ),
    });
    const before = Project.fromPartial({ configuration: configuration("hunter2", "hünter", "k3y") });
    const { redacted, message } = masked("hashicorp.vagrant.Project", Project, before);
    expect(message).toEqual(Project.fromPartial({ configuration: configuration("*******", "*******", "***") }));
    expect(redacted).toBe(4);
  });

  it("has none in the lists of its Vagrantfile, which its provisioners are", () => {
    const provisioners = (one: string, other: string) => ({
      configuration: {
        finalized: hash([
          symbol("provisioners"),
          array(string(`export TOKEN=${one}`), array(packed(hash([symbol("db_password"), string(other)])))),
        ]),
      },
    });
    const { redacted, message } = masked(
      "hashicorp.vagrant.Project",
      Project,
      Project.fromPartial(provisioners("k3y", "hunter2")),
    );
    expect(message).toEqual(Project.fromPartial(provisioners("***", "*******")));
    expect(redacted).toBe(2);
  });

  it("has none in Ruby's own values, whose types nobody here knows", () => {
    const values = (one: string, other: string, third: string, fourth: string) => ({
      configuration: {
        unfinalized: hash(
          [symbol("password"), symbol(one)],
          [symbol("user"), symbol("bob")],
          [
            string("env"),
            raw("Object", entry(string("@db_password"), string(other)), entry(symbol("tier"), symbol("gold"))),
          ],
          [
            string("range"),
            any("hashicorp.vagrant.sdk.Args.Range", message([1, string(`TOKEN=${third}`)], [2, symbol("z")])),
          ],
          [
            string("set"),
            raw(
              "Set",
              entry(
                symbol("inner"),
                raw("Struct", entry(symbol("api_key"), raw("String", entry(string("it"), string(fourth))))),
              ),
            ),
          ],
          [string("secret_token"), any("hashicorp.vagrant.sdk.Args.Null", Buffer.alloc(0))],
          [string("n"), any("hashicorp.vagrant.sdk.Args.Integer", Buffer.from([0x08, 0xac, 0x02]))],
        ),
      },
    });
    const before = Project.fromPartial(values("hunter2", "hünter", "k3y", "abcdef"));
    const { redacted, message: after } = masked("hashicorp.vagrant.Project", Project, before);
    expect(after).toEqual(Project.fromPartial(values("*******", "*******", "***", "******")));
    expect(redacted).toBe(4);
  });

  it("has none in a message of a known type that such a value holds", () => {
    const values = (one: string) => {
      const given = Command_Arguments.encode(Command_Arguments.fromPartial({ args: ["--api-key", one, "web1"] }));
      const held = message([1, any("hashicorp.vagrant.sdk.Command.Arguments", given.finish())]);
      return { configuration: { unfinalized: hash([string("a"), any("hashicorp.vagrant.sdk.Args.Range", held)]) } };
    };
    const before = Project.fromPartial(values("abc"));
    const { redacted, message: after } = masked("hashicorp.vagrant.Project", Project, before);
    expect(after).toEqual(Project.fromPartial(values("***")));
    expect(redacted).toBe(1);
  });

  it("has none in what is not of the type that it says", () => {
    const values = (one: string) => ({
      configuration: {
        unfinalized: hash(
          [string("a"), any("hashicorp.vagrant.sdk.Args.Array", Buffer.from(`\n\x11PASSWORD=${one}`))],
          [string("b"), any("google.protobuf.StringValue", Buffer.from(`PASSWORD=${one}`))],
          [string("c"), any("hashicorp.vagrant.sdk.Args.Proc", Buffer.from(`\0\xffPASSWORD=${one}`, "latin1"))],
        ),
      },
    });
    const before = Project.fromPartial(values("hunter22"));
    const { redacted, message: after } = masked("hashicorp.vagrant.Project", Project, before);
    expect(after).toEqual(Project.fromPartial(values("********")));
    expect(redacted).toBe(3);
  });
});

describe("mask", () => {
  it("gives back the very bytes where there is no secret", () => {
    const bytes = Job.encode(Job.fromPartial({ id: "j", result: { run: { run_result: true } } })).finish();
    expect(mask("hashicorp.vagrant.Job", bytes)).toEqual({ bytes, redacted: 0 });
    expect(mask("hashicorp.vagrant.Job", bytes).bytes).toBe(bytes);
  });

  it("masks bytes that are no such message, or of a type that is none of Vagrant's, as text", () => {
    const broken = Buffer.from("\n\xffDB_PASSWORD=hunter2", "latin1");
    for (const type of ["hashicorp.vagrant.Target", "tapedeck.v1.Observation"]) {
      const { bytes, redacted } = mask(type, broken);
      expect([Buffer.from(bytes).toString("latin1"), redacted]).toEqual(["\n\xffDB_PASSWORD=*******", 1]);
    }
  });

  const text = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.constantFrom("PASSWORD=hunter2", `x ${token} y`, "--token", "password", "https://a:b@c/", "TOKEN=ü\n"),
  );
  const bytes = fc
    .oneof(
      fc.uint8Array(),
      text.map((one) => Buffer.from(one)),
    )
    .map((one) => Buffer.from(one));
  const strings = fc.tuple(text, text, text, bytes);

  it("keeps the length and all that is not text, whatever the texts are", () => {
    fc.assert(
      fc.property(strings, ([a, b, c, raw]) => {
        const job = Job.fromPartial({
          labels: { [a]: b },
          state: 3,
          operation: {
            $case: "command",
            value: {
              command: a,
              cli_args: { args: [a, b, c], flags: [{ name: a, value: { $case: "string", value: b } }] },
            },
          },
          error: { code: 1, message: c, details: [string(a), any(b, raw), any("hashicorp.vagrant.Job", raw)] },
        });
        const event = TerminalEvent.fromPartial({ event: { $case: "step", value: { id: 7, msg: a, output: raw } } });
        const unfinalized = hash([string(a), string(b)], [symbol(c), packed(hash([string(b), string(c)]))]);
        const project = Project.fromPartial({ name: a, configuration: { raw, unfinalized } });
        expect(lengthsOf(masked("hashicorp.vagrant.Job", Job, job).message)).toEqual(lengthsOf(job));
        expect(lengthsOf(masked(type, TerminalEvent, event).message)).toEqual(lengthsOf(event));
        expect(lengthsOf(masked("hashicorp.vagrant.Project", Project, project).message)).toEqual(lengthsOf(project));
      }),
    );
  });

  it("takes any bytes for any type", () => {
    fc.assert(
      fc.property(bytes, fc.constantFrom("Job", "Project", "Target", "GetJobStreamResponse"), (given, type) => {
        expect(mask(`hashicorp.vagrant.${type}`, given).bytes).toHaveLength(given.length);
      }),
    );
  });
});

/** With the number of bytes in the place of text and bytes (keys of maps too). */
function lengthsOf(value: unknown): unknown {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (value instanceof Uint8Array) return value.length;
  if (Array.isArray(value)) return value.map(lengthsOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value).map(([key, inside]) => [Buffer.byteLength(key), lengthsOf(inside)]);
}
