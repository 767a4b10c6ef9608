import { asBytes } from "@tapedeck/shared/rpc/as-bytes";

type MethodShape = { readonly requestStream: boolean; readonly responseStream: boolean };

const bytes = {
  requestSerialize: asBytes,
  requestDeserialize: asBytes,
  responseSerialize: asBytes,
  responseDeserialize: asBytes,
};

/** A service whose methods take and give bytes, or only those for which `isRaw` says so. */
export function byteService<M extends MethodShape>(
  service: Readonly<Record<string, M>>,
  isRaw: (method: M) => boolean = () => true,
) {
  return Object.fromEntries(
    Object.entries(service).map(([name, method]) => [name, isRaw(method) ? { ...method, ...bytes } : method]),
  );
}
