import type { FastifyRequest } from "fastify";

export function pathOf({ url }: FastifyRequest): string {
  return url.split("?")[0] ?? "";
}

/** Our own paths have our own errors; every other path is Skaffold's. */
export function isOurs(path: string): boolean {
  return path === "/api" || path.startsWith("/api/") || path === "/mcp";
}

/** The API by which metrics count a request. */
export function apiOf(request: FastifyRequest): "api" | "skaffold http" {
  return isOurs(pathOf(request)) ? "api" : "skaffold http";
}
