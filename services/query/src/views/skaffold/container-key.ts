/** The key by which Skaffold pairs the start and the end of a debugged container. */
export function containerKey(container: {
  readonly namespace: string;
  readonly podName: string;
  readonly containerName: string;
}): string {
  return JSON.stringify([container.namespace, container.podName, container.containerName]);
}
