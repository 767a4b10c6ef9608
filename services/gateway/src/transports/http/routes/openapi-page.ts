import swagger, { type StaticDocumentSpec } from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import type { JsonSchema } from "../../../apis/tapedeck/detail-schemas.ts";
import { openApiDocument } from "./openapi.ts";

/** Everything that the page needs comes from this server, so it works without internet access. */
const contentSecurityPolicy = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": ["'self'", "'unsafe-inline'"],
  "img-src": ["'self'", "data:"],
  "connect-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
};

/** The API's description: /api/docs to read and try it, /api/docs/openapi.json for programs. Reveals nothing of the record. */
export async function openApiPage(app: FastifyInstance): Promise<void> {
  let made: JsonSchema | undefined;
  const document = () => {
    made ??= openApiDocument();
    return made;
  };
  const page: FastifyPluginAsync = async (docs) => {
    docs.addHook("onRoute", (route) => {
      route.config = { ...route.config, access: "everyone" };
      // Rendered for every request, and not needed.
      if (route.url === "/api/docs/yaml") route.handler = (_request, reply) => reply.callNotFound();
    });
    docs.get("/api/docs/openapi.json", async (_request, reply) => reply.type("application/json").send(document()));
    // The description is made when the page first asks for it, so that the start does not wait.
    const specification: StaticDocumentSpec = {
      document: { openapi: "3.1.0", info: { title: "", version: "" }, paths: {} },
    };
    await docs.register(swagger, { mode: "static", specification });
    await docs.register(swaggerUi, {
      routePrefix: "/api/docs",
      staticCSP: contentSecurityPolicy,
      theme: { title: "Tapedeck's HTTP API" },
      uiConfig: { deepLinking: true },
      transformSpecification: () => ({ ...document() }),
      transformSpecificationClone: false,
    });
  };
  await app.register(page);
}
