// Uploads the user's files: announces all of them first, then sends a few at a time.

const atOnce = 4;

export async function announce(path, body) {
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// `progress(id, fraction)` is called for each photo, `total(done, count)` for all.
export async function upload(files, page, progress, total) {
  const ids = await announce("/batches", { page, names: files.map((file) => file.name) });
  let next = 0, done = 0;
  total(done, files.length);
  const worker = async () => {
    while (next < files.length) {
      const index = next++;
      await send(files[index], ids[index], progress);
      total(++done, files.length);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

// Never rejects: the server reports failures in its notice.
function send(file, id, progress) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.upload.onprogress = (event) => progress(id, event.loaded / event.total);
    request.onloadend = () => {
      // Status 0: it could not be sent, for example because the file was deleted. Tell the server not to wait for it.
      if (request.status === 0) fetch(`/photos/${id}`, { method: "DELETE" }).catch(() => {});
      resolve();
    };
    request.open("POST", `/photos/${id}`);
    request.send(file);
  });
}
