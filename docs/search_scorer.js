// Guide pages rank before API pages and examples, unless the query is the name of an object. A page whose title has all
// words of the query ranks first.
// Single letters, as in k-anonymity and p-value, are not searched for.
var splitQuery = (query) => query.split(/[^\p{Letter}\p{Number}_]+/u).filter((word) => word.length > 1);
const queryStems = () =>
  (new URLSearchParams(window.location.search).get("q") || "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word.length > 3)
    .map((word) => word.slice(0, Math.max(3, word.length - 2)));
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    const isReference = /^(generated|api|auto_examples|examples|guide|glossary)/.test(docname);
    const stems = queryStems();
    const isTopic = !anchor && stems.length > 0 && stems.every((stem) => title.toLowerCase().includes(stem));
    return score - (isReference && kind !== "object" ? 20 : 0) - (anchor ? 2 : 0) + (isTopic ? 10 : 0);
  },
  objNameMatch: 20,
  objPartialMatch: 1,
  objPrio: {0: 0, 1: 0, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
