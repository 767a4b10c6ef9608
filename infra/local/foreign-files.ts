/** What file systems, kernels, desktops and editors leave in any folder. It says nothing about whose folder it is. */
const names = [
  /^lost\+found$/,
  /^core(?:\.\d+)?$/,
  /^(?:\.DS_Store|\.AppleDouble|\.Spotlight-V100|\.fseventsd|\.TemporaryItems|\._.*|\.apdisk)$/,
  /^(?:Thumbs\.db|desktop\.ini|\$RECYCLE\.BIN|System Volume Information)$/i,
  /^(?:\.directory|\.Trash(?:-\d+|es)?|\.nfs[0-9a-f]+|\.fuse_hidden[0-9a-f]+|\.snapshots?|@eaDir|\.zfs|aquota\.(?:user|group)|\.stfolder)$/,
  // Editors' copies, locks and undo files.
  /^(?:\..*\.sw[a-p]|.*~|#.*#|\.#.*|\..*\.un~)$/,
  /^\.git(?:keep|ignore)$/,
];

/** Whether a folder with a file of this name may still be taken for an empty one. */
export function isForeignFile(name: string): boolean {
  return names.some((pattern) => pattern.test(name));
}
