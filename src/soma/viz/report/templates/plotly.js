// Unpacks Plotly and lets it draw over the figures, where the page is wide enough for it.
(async () => {
  const { nonce } = document.currentScript;
  const read = (id) => document.getElementById(id).textContent;
  if (innerWidth < 700 || typeof DecompressionStream === "undefined") return;
  const packed = Uint8Array.from(atob(read("soma-plotly")), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.nonce = nonce;
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  for (const [key, figure] of Object.entries(JSON.parse(read("soma-figures")))) {
    const place = document.querySelector(`[data-figure="${key}"]`);
    const drawn = document.createElement("div");
    drawn.className = "plotly card";
    place.before(drawn);
    await Plotly.newPlot(drawn, figure.data, figure.layout, figure.config);
    place.classList.add("replaced");
  }
})();
