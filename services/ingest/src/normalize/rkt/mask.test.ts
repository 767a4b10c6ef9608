import { Image, ListImagesResponse, ListPodsResponse, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { describe, expect, it } from "vitest";
import { mask } from "./mask.ts";

const environment = (password: string) =>
  JSON.stringify({
    apps: [
      {
        name: "db",
        app: {
          environment: [
            { name: "DB_PASSWORD", value: password },
            { name: "HOME", value: "/" },
          ],
        },
      },
    ],
    annotations: [{ name: "tier", value: "gold" }],
  });

const pod = (password: string, annotations: readonly (readonly [string, string])[] = []) =>
  Pod.fromPartial({
    id: "p",
    manifest: Buffer.from(environment(password)),
    annotations: annotations.map(([Key, value]) => ({ Key, value })),
    apps: [{ name: "db", exit_code: -1, annotations: [{ Key: "note", value: "none" }] }],
    created_at: 1795188465237983833n,
  });

const encode = (message: Pod) => Buffer.from(Pod.encode(message).finish());

describe("mask", () => {
  it("masks the environment in a pod's manifest, in place", () => {
    const bytes = encode(pod("hunter2"));
    const masked = mask("v1alpha.Pod", bytes);
    expect(masked.redacted).toBe(1);
    expect(masked.bytes).toHaveLength(bytes.length);
    expect(Pod.decode(masked.bytes)).toEqual(pod("*******"));
  });

  it("masks an annotation whose key says that it is one, wherever it stands, and tokens in any", () => {
    const token = `ghp_${"a".repeat(36)}`;
    const bytes = encode(
      pod("*******", [
        ["example.com/db-password", "hünter 2"],
        ["tier", "gold"],
        ["note", `uses ${token}`],
        ["secret", "true"],
      ]),
    );
    const masked = mask("v1alpha.Pod", bytes);
    expect(masked.redacted).toBe(2);
    expect(Pod.decode(masked.bytes).annotations.map(({ value }) => value)).toEqual([
      "*".repeat(9),
      "gold",
      `uses ${"*".repeat(token.length)}`,
      "true",
    ]);
  });

  it("masks whole lists, images, and logs", () => {
    const image = Image.fromPartial({ id: "sha512-1", manifest: Buffer.from(environment("hunter2")) });
    const images = mask("v1alpha.ListImagesResponse", ListImagesResponse.encode({ images: [image] }).finish());
    expect(ListImagesResponse.decode(images.bytes).images[0]?.manifest.toString()).toBe(environment("*******"));
    const pods = mask("v1alpha.ListPodsResponse", ListPodsResponse.encode({ pods: [pod("a"), pod("b")] }).finish());
    expect([pods.redacted, ListPodsResponse.decode(pods.bytes)]).toEqual([
      2,
      { pods: [pod("*"), pod("*")], _unknownFields: {} },
    ]);
    expect(mask("v1alpha.Image", Image.encode(image).finish()).redacted).toBe(1);
    const line = Buffer.from("\n\x13MESSAGE=API_KEY=abc");
    expect(Buffer.from(mask("v1alpha.GetLogsResponse", line).bytes).toString()).toBe("\n\x13MESSAGE=API_KEY=***");
  });

  it("finds nothing in what it has masked, and gives back the very bytes where there is nothing", () => {
    const once = mask("v1alpha.Pod", encode(pod("hunter2", [["password", "x"]])));
    const twice = mask("v1alpha.Pod", once.bytes);
    expect(twice.redacted).toBe(0);
    expect(twice.bytes).toBe(once.bytes);
  });

  it("masks bytes that are no such message, or of a type that is not known, as text", () => {
    const broken = Buffer.from("\n\xffDB_PASSWORD=hunter2", "latin1");
    for (const type of ["v1alpha.Pod", "other.Message"]) {
      const masked = mask(type, broken);
      expect(masked.redacted).toBe(1);
      expect(Buffer.from(masked.bytes).toString("latin1")).toBe("\n\xffDB_PASSWORD=*******");
    }
  });
});
