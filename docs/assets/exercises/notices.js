// Short messages above the results, each with what the reader can do about it.

/** Show a notice and return it; `actions` are [label, function] pairs, each of which ends it. */
export function addNotice(list, text, actions = []) {
  const notice = document.createElement("p");
  notice.className = "exercise-notice";
  notice.append(text);
  for (const [label, act] of [...actions, ["Dismiss", () => {}]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => {
      notice.remove();
      act();
    });
    notice.append(" ", button);
  }
  list.append(notice);
  return notice;
}
