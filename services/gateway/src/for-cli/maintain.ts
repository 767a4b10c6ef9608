// For `tapedeck rebuild` and `tapedeck workspace` on the server's machine, which ask ingest and query past the gateway.
export { listWorkspaces } from "../apis/maintain/workspaces/list-workspaces.ts";
export { beginRemoval } from "../apis/maintain/workspaces/remove-workspace.ts";
export { setRetention } from "../apis/maintain/workspaces/set-retention.ts";
export { maintainClient } from "../maintain-client.ts";
export { queryClient } from "../query-client.ts";
export { QueryRoutes, routedQuery } from "../workspaces/query-routes.ts";
