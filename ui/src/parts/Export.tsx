import { useNotice } from "./Notice";

/** Saves what the server exports as a file. A link cannot, because it sends no key. */
export function Export({ name, read }: { name: string; read: () => Promise<Blob> }) {
  const tell = useNotice();
  const save = () => {
    read().then((file) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(file);
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }, (e: unknown) => tell({ text: e instanceof Error ? e.message : String(e), failed: true }));
  };
  return <button type="button" className="button" onClick={save}>Export</button>;
}
