// What Node 20 and 22 lack of what the sources use. Newer ones don't load this.
import "core-js/actual/array/from-async.js";
import "core-js/actual/async-disposable-stack/index.js";
import "core-js/actual/disposable-stack/index.js";
import "core-js/actual/iterator/index.js";
import "core-js/actual/map/group-by.js";
import "core-js/actual/promise/try.js";
import "core-js/actual/promise/with-resolvers.js";
import "core-js/actual/set/index.js";
import { WebSocket } from "ws";

globalThis.WebSocket ??= WebSocket as unknown as typeof globalThis.WebSocket;
