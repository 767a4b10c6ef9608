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

const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 148 32" height="32" fill="none" stroke="#fff" stroke-width="2"><title>Tapedeck</title><rect x="1.5" y="6.5" width="29" height="19" rx="4"/><circle cx="11" cy="16" r="4"/><circle cx="21" cy="16" r="4"/><path d="M11 20h10"/><text x="40" y="22" fill="#fff" stroke="none" font-family="system-ui,sans-serif" font-size="18" font-weight="600">Tapedeck</text></svg>`;
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="2" y="7" width="28" height="18" rx="4" fill="#2f5fd0"/><g fill="none" stroke="#fff" stroke-width="2"><circle cx="11" cy="16" r="4"/><circle cx="21" cy="16" r="4"/><path d="M11 20h10"/></g></svg>`;
/** There is one description here, so nothing else is to be explored. */
const css =
  "body .swagger-ui .topbar .download-url-wrapper { display: none } " +
  "body .swagger-ui .topbar .topbar-wrapper { justify-content: space-between }";

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
      logo: { type: "image/svg+xml", content: logo, href: "/", target: "_self" },
      theme: {
        title: "Tapedeck's HTTP API",
        css: [{ filename: "tapedeck.css", content: css }],
        favicon: [
          { filename: "icon.svg", rel: "icon", type: "image/svg+xml", sizes: "any", content: Buffer.from(icon) },
        ],
      },
      uiConfig: { deepLinking: true },
      transformSpecification: () => ({ ...document() }),
      transformSpecificationClone: false,
    });
  };
  await app.register(page);
}
