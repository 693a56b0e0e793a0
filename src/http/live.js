/* The events of /live, once a second, while the page is looked at; again after a second when the stream has ended. Not an
 * EventSource: that sends no token. The page gives `headers` of a request, is told that one was `accepted`, of each `event`, that the stream has `ended`
 * or that the server is `silent`; of a `refused` answer it says whether to ask again. What is returned asks at once. */
function live(page) {
  let asking = null, timer = 0;

  async function read(stream) {
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part; !(part = await reader.read()).done;) {
      const events = (text + part.value).split("\n\n");
      text = events.pop();
      for (const event of events.filter(e => e.startsWith("data: "))) page.event(JSON.parse(event.slice(6)));
    }
  }

  async function ask() {
    clearTimeout(timer);
    if (asking) asking.abort();
    const mine = asking = document.hidden ? null : new AbortController();
    if (!mine) return;
    try {
      const response = await fetch("/live", {headers: page.headers(), signal: mine.signal});
      if (response.ok) {
        page.accepted();
        await read(response.body);
        if (mine === asking) page.ended();
      } else if (!await page.refused(response)) return;
    } catch {
      if (mine === asking) page.silent();
    }
    if (mine === asking) timer = setTimeout(ask, 1000);
  }
  document.addEventListener("visibilitychange", ask);
  ask();
  return ask;
}
