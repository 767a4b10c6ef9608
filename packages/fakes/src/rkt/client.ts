import type { ServiceError } from "@grpc/grpc-js";
import { PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { connectionTo } from "../client-connection.ts";

const { listPods, listImages } = PublicAPIService;
const empty = Buffer.alloc(0);
const same = (bytes: Buffer) => bytes;

/** Asks a fake as a test wants to: with bytes or messages. Each client has a connection of its own. */
export function connectTo({ address }: { readonly address: string }) {
  const client = connectionTo(address);

  function raw(rpc: string, request: Buffer, deadline?: number) {
    return new Promise<{ code: number; details: string; bytes: Buffer }>((resolve) => {
      const answered = (error: ServiceError | null, bytes: Buffer = empty) =>
        resolve({ code: error?.code ?? 0, details: error?.details ?? "", bytes });
      const options = deadline === undefined ? {} : { deadline };
      client.makeUnaryRequest(`/v1alpha.PublicAPI/${rpc}`, same, same, request, options, answered);
    });
  }

  async function call<Q, A>(method: Method<Q, A>, request: Q): Promise<A> {
    const { code, details, bytes } = await raw(nameOf(method), method.requestSerialize(request));
    if (code !== 0) throw new Error(`${code} ${details}`);
    return method.responseDeserialize(bytes);
  }

  return {
    raw,
    call,
    pods: async (detail = false) => (await call(listPods, { filters: [], detail })).pods,
    images: async (detail = false) => (await call(listImages, { filters: [], detail })).images,
    stream(rpc: string, request: Buffer) {
      const made = client.makeServerStreamRequest(`/v1alpha.PublicAPI/${rpc}`, same, same, request);
      const got: Buffer[] = [];
      const end = new Promise<{ code: number; details: string }>((resolve) => made.on("status", resolve));
      made.on("error", () => {});
      made.on("data", (bytes: Buffer) => got.push(bytes));
      return { got, end, cancel: () => made.cancel() };
    },
    [Symbol.dispose]: () => client.close(),
  };
}

type Method<Q, A> = {
  readonly path: string;
  readonly requestSerialize: (request: Q) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => A;
};

function nameOf({ path }: { readonly path: string }): string {
  return path.replace("/v1alpha.PublicAPI/", "");
}
