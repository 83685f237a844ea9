// Which exercises the roadmap shows; the choice stands in the address, so that it can be kept.

function suits(item, name, wanted) {
  return wanted === "" || item.dataset[name].split(" ").includes(wanted);
}

function readAddress(selects) {
  const query = new URLSearchParams(location.search);
  for (const select of selects) {
    const wanted = query.get(select.name) ?? "";
    const isKnown = [...select.options].some((option) => option.value === wanted);
    select.value = isKnown ? wanted : "";
  }
}

function writeAddress(selects) {
  const url = new URL(location.href);
  for (const { name, value } of selects) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  history.replaceState(history.state, "", url);
}

/** Let a form of selects, named as the data of the items, decide what is shown; returns how. */
export function filter(form, items, signal) {
  const selects = [...form.querySelectorAll("select")];
  const shown = form.querySelector(".roadmap-shown");
  const apply = () => {
    for (const item of items) {
      item.hidden = !selects.every(({ name, value }) => suits(item, name, value));
    }
    for (const section of new Set(items.map((item) => item.closest("section")))) {
      section.hidden = !section.querySelector("li:not([hidden])");
    }
    const number = items.filter((item) => !item.hidden).length;
    const isFiltered = selects.some(({ value }) => value);
    shown.textContent = isFiltered ? `${number} of ${items.length} exercises match` : "";
    form.querySelector("[type=reset]").hidden = !isFiltered;
  };
  const changed = () => {
    writeAddress(selects);
    apply();
  };
  readAddress(selects);
  form.addEventListener("change", changed, { signal });
  form.addEventListener("submit", (event) => event.preventDefault(), { signal });
  const clear = (event) => {
    event.preventDefault(); // a reset happens only after its event
    for (const select of selects) select.value = "";
    changed();
    selects[0].focus(); // the button goes away
  };
  form.addEventListener("reset", clear, { signal });
  return apply;
}
