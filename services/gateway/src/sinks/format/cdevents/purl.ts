/** The package URL of a container image, by the name under which Skaffold builds it ("gcr.io/shop/web"). Its digest is not known. */
export function ociPurl(image: string): string {
  const name = image.split("/").at(-1) ?? image;
  const path = encoded(name.toLowerCase());
  return name === image ? `pkg:oci/${path}` : `pkg:oci/${path}?repository_url=${encoded(image.toLowerCase())}`;
}

/** The package URL of an image of rkt, which has a type of its own in no registry of packages. */
export function appImagePurl({
  id,
  name,
  version,
}: {
  readonly id: string;
  readonly name: string;
  readonly version: string;
}) {
  if (name === "") return `pkg:generic/${encoded(id)}`;
  const at = version === "" ? "" : `@${encoded(version)}`;
  return `pkg:generic/${name.split("/").map(encoded).join("/")}${at}?image_id=${encoded(id)}`;
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}
