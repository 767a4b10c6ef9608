import type { EventFilter, Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Image, type ImageFilter, type KeyValue, Pod, type PodFilter } from "@tapedeck/proto/rkt/v1alpha/rkt";

// rkt's own rules, as its server applies them (docs/upstreams/rkt.md#pod-filters): the fields of a filter are ANDed,
// the filters of a request ORed; a field without values matches all, and so do no filters.

/** Whether an encoded v1alpha.Pod passes. Decodes it only when there are filters. */
export function podPasses(filters: readonly PodFilter[]): (pod: Uint8Array) => boolean {
  if (filters.length === 0) return () => true;
  return (bytes) => {
    const pod = Pod.decode(bytes);
    return filters.some((filter) => podMatches(pod, filter));
  };
}

/** Whether an encoded v1alpha.Image passes. */
export function imagePasses(filters: readonly ImageFilter[]): (image: Uint8Array) => boolean {
  if (filters.length === 0) return () => true;
  return (bytes) => {
    const image = Image.decode(bytes);
    return filters.some((filter) => imageMatches(image, filter));
  };
}

function podMatches(pod: Pod, filter: PodFilter): boolean {
  return (
    isAnyOf(filter.ids, pod.id) &&
    isAnyOf(filter.states, pod.state) &&
    hasEvery(pod.apps, filter.app_names, ({ name }) => name) &&
    hasEvery(pod.apps, filter.image_ids, ({ image }) => image?.id) &&
    hasEvery(pod.networks, filter.network_names, ({ name }) => name) &&
    hasPairs(pod.annotations, filter.annotations) &&
    isAnyOf(filter.cgroups, pod.cgroup) &&
    // A prefix of the text, not of the path. A pod that is not running has no cgroup.
    isAny(filter.pod_sub_cgroups, (cgroup) => pod.cgroup !== "" && cgroup.startsWith(pod.cgroup))
  );
}

function imageMatches(image: Image, filter: ImageFilter): boolean {
  const { name, import_timestamp: imported } = image;
  return (
    isAnyOf(filter.ids, image.id) &&
    isAnyOf(filter.full_names, name) &&
    isAny(filter.prefixes, (prefix) => name.startsWith(prefix)) &&
    isAnyOf(filter.base_names, name.slice(name.lastIndexOf("/") + 1)) &&
    isAny(filter.keywords, (keyword) => name.includes(keyword)) &&
    hasPairs(image.labels, filter.labels) &&
    hasPairs(image.annotations, filter.annotations) &&
    (filter.imported_after <= 0n || imported > filter.imported_after) &&
    (filter.imported_before <= 0n || imported < filter.imported_before)
  );
}

/**
 * Times are whole seconds, both ends are exclusive, and 0 is no end. Names are compared with `from`. No rkt ever sent an
 * event: these are the rules that its API describes.
 */
export function eventMatches(event: RktEvent, filter: EventFilter): boolean {
  return (
    isAnyOf(filter.types, event.type) &&
    isAnyOf(filter.ids, event.id) &&
    isAnyOf(filter.names, event.from) &&
    (filter.since_time === 0n || event.time > filter.since_time) &&
    (filter.until_time === 0n || event.time < filter.until_time)
  );
}

function isAny<T>(allowed: readonly T[], test: (one: T) => boolean): boolean {
  return allowed.length === 0 || allowed.some(test);
}

function isAnyOf<T>(allowed: readonly T[], found: T): boolean {
  return isAny(allowed, (one) => one === found);
}

function hasEvery<T>(found: readonly T[], allowed: readonly string[], of: (one: T) => string | undefined): boolean {
  return allowed.every((name) => found.some((one) => of(one) === name));
}

/** The first pair of a key counts. A key without a value means the empty value. */
function hasPairs(found: readonly KeyValue[], allowed: readonly KeyValue[]): boolean {
  return allowed.every(({ Key, value }) => found.find((pair) => pair.Key === Key)?.value === value);
}
