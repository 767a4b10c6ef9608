import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type * as proto from "@tapedeck/proto/tapedeck/v1/tapedeck";
import type * as shared from "@tapedeck/shared/errors/errors";
import type { EventJson } from "@tapedeck/shared/events/json";
import { type operationKinds, kinds as sharedKinds } from "@tapedeck/shared/events/kinds";
import { outcomeNames, timeSourceNames } from "@tapedeck/shared/events/names";
import { type FilterField, filterFields } from "@tapedeck/shared/filter/filter";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { Details } from "./details.ts";
import type { KnownErrorCode } from "./error.ts";
import { filterOf } from "./filter.ts";
import {
  type ComparedFailure,
  type ComparedSide,
  type Comparison,
  type DetailOf,
  type Difference,
  type EventFields,
  type Evidence,
  type Filter,
  type KindsLike,
  kinds,
  type Outcome,
  type SameFact,
  type TapedeckEvent,
} from "./index.ts";
import type { OperationKind } from "./resources.ts";

// What is written here of the contract is what the others know of it. Types are checked by `tsc`, not by the run.

it("knows the same kinds of events and operations, errors, outcomes and fields of a filter", () => {
  expect(kinds).toEqual(sharedKinds);
  expectTypeOf<OperationKind>().toEqualTypeOf<(typeof operationKinds)[number]>();
  expectTypeOf<KnownErrorCode>().toEqualTypeOf<shared.ErrorCode>();
  expectTypeOf<keyof Filter>().toEqualTypeOf<FilterField>();
  const filter = Object.fromEntries(filterFields.map((field) => [field, ["x"]]));
  expect(filterOf({ ...filter, after: "start" } as Filter)).toEqual(filter);
  const outcomes: Record<Outcome, true> = { succeeded: true, failed: true, canceled: true, unknown: true };
  expect(new Set(Object.keys(outcomes))).toEqual(new Set(Object.values(outcomeNames).filter((name) => name !== "")));
  const timeSources: Record<NonNullable<EventFields["timeSource"]>, true> = {
    upstream: true,
    observed: true,
    interval: true,
  };
  const sources = Object.values(timeSourceNames).filter((name) => name !== "");
  expect(new Set(Object.keys(timeSources))).toEqual(new Set(sources));
});

it("knows the same fields of an event", () => {
  expectTypeOf<keyof TapedeckEvent>().toEqualTypeOf<keyof EventJson>();
  expectTypeOf<Plain<Omit<EventFields, "operation" | "original">>>().toEqualTypeOf<
    Plain<Omit<EventJson, "kind" | "detail" | "operation" | "original">>
  >();
  expectTypeOf<Readonly<EventFields["operation"]>>().toEqualTypeOf<
    Readonly<AsJson<NonNullable<Event["operation"]>>> | undefined
  >();
});

it("knows the same fields of a comparison", () => {
  type Names<Message> = Camel<Exclude<keyof Message, "_unknownFields">>;
  expectTypeOf<keyof Comparison>().toEqualTypeOf<Names<proto.CompareResponse>>();
  expectTypeOf<keyof ComparedSide>().toEqualTypeOf<Names<proto.ComparedSide>>();
  expectTypeOf<keyof ComparedFailure>().toEqualTypeOf<Names<proto.ComparedSide_Failure>>();
  expectTypeOf<keyof Difference>().toEqualTypeOf<Names<proto.Difference>>();
  expectTypeOf<keyof Evidence>().toEqualTypeOf<Names<proto.Difference_Evidence>>();
  expectTypeOf<keyof SameFact>().toEqualTypeOf<Names<proto.SameFact>>();
});

describe("details", () => {
  /** Which message of the log is behind the details of which nouns. */
  type Cases = {
    source: "source_detail";
    session: "session_detail";
    loop: "loop";
    init: "phase";
    build: "build";
    test: "phase";
    render: "phase";
    deploy: "phase";
    verify: "phase";
    exec: "phase";
    check: "phase";
    resource: "resource";
    sync: "sync";
    port: "port";
    debugger: "debug";
    log: "text";
    terminal: "text";
    control: "control";
    upstream: "upstream";
    mirror: "mirror";
    inventory: "host";
    pod: "pod";
    app: "app";
    image: "image";
    job: "job";
    command: "command";
    target: "thing";
    project: "thing";
    basis: "thing";
    box: "thing";
    runner: "thing";
  };
  type Case = NonNullable<Event["detail"]>;
  type Value<Name extends Case["$case"]> = Extract<Case, { $case: Name }>["value"];

  it("are those of the log, as JSON has them", () => {
    expectTypeOf<keyof Details>().toEqualTypeOf<keyof Cases>();
    type Other = {
      [Noun in keyof Details]: Same<Details[Noun], AsJson<Value<Cases[Noun]>>> extends true ? never : Noun;
    };
    expectTypeOf<Other[keyof Details]>().toEqualTypeOf<never>();
    expectTypeOf<Plain<DetailOf<"session.gap">>>().toEqualTypeOf<Plain<AsJson<Value<"gap">>>>();
    // Each message is one of these.
    expectTypeOf<Cases[keyof Cases] | "gap">().toEqualTypeOf<Case["$case"]>();
  });

  it("go with the kinds that were asked for", () => {
    expectTypeOf<KindsLike<"build.*">>().toEqualTypeOf<Extract<TapedeckEvent["kind"], `build.${string}`>>();
    expectTypeOf<KindsLike<"*.lost" | "loop.failed">>().toEqualTypeOf<
      "session.lost" | "job.lost" | "upstream.lost" | "loop.failed"
    >();
    expectTypeOf<KindsLike<"*">>().toEqualTypeOf<TapedeckEvent["kind"]>();
    expectTypeOf<KindsLike<string>>().toEqualTypeOf<TapedeckEvent["kind"]>();
    expectTypeOf<DetailOf<KindsLike<"deploy.*">>["taskId"]>().toEqualTypeOf<string>();
    const artifactOf = (event: TapedeckEvent) => (event.kind === "build.failed" ? event.detail?.artifact : undefined);
    expectTypeOf(artifactOf).returns.toEqualTypeOf<string | undefined>();
  });
});

type Camel<Name> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Name;

/** A message as `eventToJson` writes it: lowerCamelCase, bytes in base64, times RFC 3339. */
type AsJson<T> = T extends bigint
  ? number
  : T extends Uint8Array | Timestamp
    ? string
    : T extends readonly (infer Item)[]
      ? AsJson<Item>[]
      : T extends object
        ? {
            [Field in keyof T as Field extends "_unknownFields" | number ? never : Camel<Field>]: AsJson<
              Exclude<T[Field], undefined>
            >;
          }
        : T;

type Same<A, B> = (<T>() => T extends Plain<A> ? 1 : 2) extends <T>() => T extends Plain<B> ? 1 : 2 ? true : false;

/** Without what the log's types don't say: readonly, and which words a text may be. */
type Plain<T> = T extends string
  ? string
  : T extends boolean
    ? boolean
    : T extends readonly (infer Item)[]
      ? Plain<Item>[]
      : T extends object
        ? { -readonly [Field in keyof T]: Plain<T[Field]> }
        : T;
