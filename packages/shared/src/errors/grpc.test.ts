import type { ServiceError } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { TapedeckError } from "./errors.ts";
import { fromServiceError, toGrpcStatus } from "./grpc.ts";

const asReceived = (error: unknown): ServiceError => Object.assign(new Error("as received"), toGrpcStatus(error));

describe("errors over gRPC", () => {
  it("arrive with their code, message and details", () => {
    const details = { field: "after", earliest: "abc-4", choices: ["a/b", "c/d"] };
    const back = fromServiceError(asReceived(new TapedeckError("out_of_range", "too old", details)));
    expect(back).toMatchObject({ code: "out_of_range", message: "too old", details });
  });

  it("reveal nothing of an unexpected error", () => {
    const status = toGrpcStatus(new Error("password is hunter2"));
    expect(status).toMatchObject({ code: 13, details: "internal error" });
    expect(JSON.stringify(status.metadata)).not.toContain("hunter2");
  });

  it.each([
    ["that is unreachable", 14],
    ["that does not answer in time", 4],
    ["that ends the call", 1],
  ])("say not_ready for a service %s", (_, code) => {
    const away = Object.assign(new Error(), { code, details: "No connection", metadata: { get: () => [] } });
    expect(fromServiceError(away)).toMatchObject({ code: "not_ready" });
  });
});
