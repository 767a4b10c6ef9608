import { messageType } from "@tapedeck/shared/descriptors/registry";
import { describe, expect, it } from "vitest";
import { BadBodyError } from "./errors.ts";
import { readRequestBody } from "./request-body.ts";

/** Bodies and answers from recording 09-error-responses, and others by Go's encoding/json. */
const refused: [type: string, body: string, message: string][] = [
  ["proto.Intent", "{bad json", "invalid character 'b' looking for beginning of object key string"],
  ["proto.Intent", "[]", "proto: syntax error (line 1:1): unexpected token ["],
  ["proto.Intent", '"x"', 'proto: syntax error (line 1:1): unexpected token "x"'],
  ["proto.Intent", "null", "proto: syntax error (line 1:1): unexpected token null"],
  ["proto.Intent", '{"build":"yes"}', 'proto: (line 1:10): invalid value for bool field build: "yes"'],
  ["proto.Intent", '{"build":1}', "proto: (line 1:10): invalid value for bool field build: 1"],
  ["proto.Intent", "sync=false", "invalid character 's' looking for beginning of value"],
  ["proto.Event", '{"metaEvent":{"entry":5}}', "proto: (line 1:23): invalid value for string field entry: 5"],
  [
    "proto.Event",
    '{"metaEvent":{},"portEvent":{}}',
    'proto: (line 1:17): error parsing "portEvent", oneof proto.Event.event_type is already set',
  ],
  [
    "proto.v2.Event",
    '{"taskEvent":{"iteration":"x"}}',
    'proto: (line 1:27): invalid value for int32 field iteration: "x"',
  ],
  ["proto.Intent", '{"build":tru}', "invalid character '}' in literal true (expecting 'e')"],
  ["proto.Intent", '{"build" true}', "invalid character 't' after object key"],
  ["proto.Intent", '{"build":true "x"}', "invalid character '\"' after object key:value pair"],
  ["proto.Intent", '{"build":true', "unexpected EOF"],
];

const taken: [type: string, body: string][] = [
  ["proto.Intent", ""],
  ["proto.Intent", "  "],
  ["proto.Intent", '{"unknown":true}'],
  ["proto.Intent", '{"sync":false}{"trailing":1}'],
  ["proto.Event", "{}"],
  ["proto.Event", '{"deployEvent":{"actionableErr":{"errCode":504}}}'],
  ["proto.v2.Event", '{"buildSubtaskEvent":{"taskId":"Build-1"}}'],
];

describe("a request body", () => {
  it.each(refused)("as %s, %s is refused in Go's words", (type, body, message) => {
    expect(() => readRequestBody(messageType(type), body)).toThrow(new BadBodyError(message));
  });

  it.each(taken)("as %s, %j is taken", (type, body) => {
    expect(readRequestBody(messageType(type), body)).toBeInstanceOf(Uint8Array);
  });
});
