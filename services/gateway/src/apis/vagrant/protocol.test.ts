import { describe, expect, it } from "vitest";
import { checkProtocol } from "./protocol.ts";

const notSet = "required header client-api-protocol is not set";

describe("client-api-protocol", () => {
  it.each(["1,1", "1,5", "0,1", "1, 1", " 1 , 1", "1,1,9", "1,1 and more"])("%j passes", (value) =>
    expect(() => checkProtocol([value])).not.toThrow(),
  );

  it.each<[string, string[], string]>([
    ["missing", [], notSet],
    ["repeated", ["1,1", "1,1"], notSet],
    ["repeated, as Node joins it", ["1,1, 1,1"], notSet],
    ["blank", [""], 'invalid format for client-api-protocol: ""'],
    ["unparsable", ["x"], 'invalid format for client-api-protocol: "x"'],
    ["half", ["1"], 'invalid format for client-api-protocol: "1"'],
    ["negative", ["-1,1"], 'invalid format for client-api-protocol: "-1,1"'],
    ["of an old client", ["0,0"], "The client is outdated:\nits API is older than all that the server knows."],
    ["of a new client", ["2,2"], "The server is outdated:\nthe client's API is newer than what it knows."],
  ])("%s is refused", (_, values, message) => {
    expect(() => checkProtocol(values)).toThrow(expect.objectContaining({ code: 3, message }));
  });
});
