import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { upstreamNames } from "@tapedeck/shared/upstreams";
import { expect, it } from "vitest";
import { channelsOf, recordedForms } from "./sessions.ts";

it("a frame may have been recorded as it came, or with its secrets masked", () => {
  const message = (password: string) => `environment map[DB_PASSWORD:${password} HOME:/srv/home]\n`;
  const frame = (password: string) => {
    const event = { skaffoldLogEvent: { level: "DEBUG", message: message(password) } };
    return fromGatewayJson(messageType("proto.v2.Event"), event);
  };
  const forms = recordedForms("skaffold", "v2", frame("hunter 2"));
  expect(forms.map((bytes) => Event.decode(bytes))).toEqual(
    ["hunter 2", "********"].map((password) => Event.decode(frame(password))),
  );
});

it("every upstream has channels, and none is Tapedeck's own", () => {
  expect(channelsOf("skaffold")).toEqual(["v1", "v2", "logs"]);
  for (const upstream of upstreamNames) {
    expect(channelsOf(upstream).length).toBeGreaterThan(0);
    expect(channelsOf(upstream)).not.toContain("tapedeck");
  }
});
