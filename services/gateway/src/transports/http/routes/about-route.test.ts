import fastify from "fastify";
import { expect, it } from "vitest";
import { aboutRoute } from "./about-route.ts";

it.each(["/docs/", undefined])("/about names the manual only if it was built: %s", async (docs) => {
  const app = fastify();
  aboutRoute(app, {
    version: "1.2.3",
    grpc: "127.0.0.1:7051",
    auth: "none",
    privacy: { developers: "shown", compareDevelopers: false },
    signIn: undefined,
    docs,
    authenticate: () => expect.fail("nobody has to be known"),
    loginOf: () => ({ authorization: undefined }),
  });
  const about = (await app.inject("/about")).json();
  expect(about).toEqual({
    version: "1.2.3",
    grpcPort: 7051,
    auth: "none",
    privacy: { developers: "shown", compareDevelopers: false },
    time: expect.any(String),
    ...(docs && { docs }),
  });
});
