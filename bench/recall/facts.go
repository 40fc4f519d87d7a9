package recall

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/bench/measure"
)

// fact is a planted statement. It is recalled if the output has all its keys.
type fact struct {
	kind, text string
	keys       []string
	// question asks for the fact in words other than those of the statement.
	question string
}

// factKind is a kind of facts. In the texts {s} is the subject, {a} and {b} are values, one
// of the lists each.
type factKind struct {
	name     string
	question string
	a, b     []string
	texts    []string
}

// factKinds returns the kinds of facts. The texts with even numbers are planted with the
// seeds for tuning, the others with those held out.
func factKinds() []factKind {
	names := []string{"Amara", "Bjorn", "Chiyo", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kavya", "Lucia", "Mbali", "Noor", "Oskar", "Priya"}
	tools := []string{"Kestrel", "Basalt", "Juniper", "Marlin", "Onyx", "Quartz", "Sorrel", "Tamarind", "Umber", "Vesper", "Willow", "Zephyr"}
	reasons := []string{
		"a stale lock file", "clock skew between two replicas", "a missing index on the tenant column", "an expired intermediate certificate", "a retry without backoff",
		"a cache that ignores the locale", "two writers with the same lease", "an integer that wraps after a month", "a proxy that strips trailing slashes", "a file handle that is never closed",
		"a default timeout of zero", "an encoding that drops umlauts", "a queue without an upper bound", "a template from the old brand", "a firewall rule in the second region",
	}
	amounts := []string{"1,750 requests", "42 seconds", "3.6 GB", "18 percent", "2,300 rows", "95 ms", "7 retries", "640 connections", "12 days", "0.8 euros", "31 tenants", "480 kB"}
	return []factKind{
		{"cause", "Why does the {s} misbehave?", reasons, nil, []string{
			"The root cause of the {s} trouble is {a}.", "It turned out that {a} is what breaks the {s}.",
			"The {s} fails because of {a}.", "We traced the {s} incident back to {a}.",
			"Reason found for the {s}: {a}.", "What makes the {s} stall is {a}.",
		}},
		{"decision", "Which product was selected for the {s}?", tools, tools, []string{
			"We decided to use {a} instead of {b} for the {s}.", "For the {s} the group settled on {a}; {b} is out.",
			"Decision: the {s} runs on {a}, not on {b}.", "After a long talk {a} was chosen over {b} for the {s}.",
			"{b} was rejected, so the {s} gets {a}.", "The {s} will be built with {a} rather than {b}.",
		}},
		{"demand", "What is required of the {s}?", amounts, nil, []string{
			"The {s} must never exceed {a}.", "It is mandatory that the {s} stays below {a}.",
			"Requirement: the {s} has to manage with {a}.", "The customer insists on {a} at most for the {s}.",
			"The {s} is not allowed to take more than {a}.", "The {s} needs to keep within {a}, no exceptions.",
		}},
		{"number", "How much was measured at the {s}?", amounts, nil, []string{
			"Measured at the {s}: {a}.", "The {s} reached {a} in the last test.",
			"At its peak the {s} used {a}.", "The dashboard shows {a} for the {s}.",
			"The {s} takes {a} on average.", "The result for the {s} is {a}.",
		}},
		{"owner", "Who is responsible for the {s}?", names, nil, []string{
			"{a} owns the {s} from now on.", "Contact for the {s} is {a}.",
			"{a} takes care of the {s}.", "The {s} belongs to {a} of the platform group.",
			"Ask {a} about the {s}.", "{a} has volunteered to maintain the {s}.",
		}},
		{"open", "What is not yet clear about the {s}?", reasons, nil, []string{
			"Open question: does the {s} suffer from {a}?", "Still unclear whether {a} affects the {s}.",
			"We do not know yet if {a} hits the {s}.", "To be checked: {a} in the {s}.",
			"Nobody could say whether {a} occurs in the {s}.", "Unresolved for the {s}: {a}.",
		}},
		{"attempt", "Which attempt at the {s} did not help?", tools, nil, []string{
			"Restarting {a} did not help the {s}.", "Moving the {s} to {a} made no difference.",
			"The attempt to patch the {s} with {a} failed.", "We tried {a} on the {s} without success.",
			"{a} was tried for the {s} and refused.", "Rolling the {s} back to {a} was in vain.",
		}},
		{"identifier", "Under which ticket is the {s} tracked?", nil, nil, []string{
			"The {s} is tracked as {t}.", "See {t} for the {s}.",
			"Ticket {t} covers the {s}.", "The {s} has the number {t}.",
			"{t} was opened for the {s}.", "Follow {t} to hear about the {s}.",
		}},
	}
}

// subjects returns the subjects of a kind of context.
func subjects(context string) []string {
	switch context {
	case "design":
		return strings.Split("tenant router,billing ledger,sync protocol,plugin host,schema registry,offline mode,audit trail,search facade,token broker,event store,layout engine,quota service,import wizard,export format,theme editor,mobile shell,access model,naming scheme,draft storage,review queue", ",")
	case "research":
		return strings.Split("baseline model,second cohort,ablation study,label noise,tokenizer variant,control group,survey form,retrieval index,reward signal,sampling plan,annotation guide,held-out split,pilot study,error taxonomy,cost estimate,replication run,prompt set,sensor array,stopping rule,calibration curve", ",")
	case "support":
		return strings.Split("invoice portal,login page,mobile client,refund form,export button,chat widget,address book,calendar sync,discount code,parcel label,trial account,password reset,team seat,webhook inbox,mail template,status page,phone line,tax report,gift card,language switch", ",")
	}
	return strings.Split("export queue,login cache,invoice importer,search index,session store,thumbnail worker,billing webhook,rate limiter,mail relay,backup job,user directory,metrics agent,upload handler,report builder,order archive,config loader,job scheduler,media proxy,inventory sync,price engine", ",")
}

// generalQuestion returns a question about all facts of a kind of context.
func generalQuestion(context string) string {
	switch context {
	case "design":
		return "What was decided and required in the design, by whom, and what is open?"
	case "log":
		return "What went wrong, what was tried, and which values were measured?"
	case "research":
		return "What are the findings, the open questions and the decisions so far?"
	case "support":
		return "What does the customer demand, what is the cause and who is responsible?"
	}
	return "What is the cause of the failures, what was tried, and what has to be done?"
}

// makeFacts returns the planted facts of a context, each with another subject and value.
func makeFacts(r *rand.Rand, context string, heldOut int) []fact {
	kinds, about := factKinds(), subjects(context)
	r.Shuffle(len(about), func(i, j int) { about[i], about[j] = about[j], about[i] })
	used := map[string]bool{}
	pick := func(list []string) string {
		for {
			if v := list[r.IntN(len(list))]; !used[v] {
				used[v] = true
				return v
			}
		}
	}
	facts := make([]fact, planted)
	for i := range facts {
		k := kinds[i%len(kinds)]
		f := fact{kind: k.name, keys: []string{about[i]}}
		values := []string{"{s}", about[i], "{t}", fmt.Sprintf("%s-%d", []string{"OPS", "WEB", "LAB", "SUP"}[r.IntN(4)], 1000+r.IntN(9000))}
		if k.a == nil {
			f.keys = append(f.keys, values[3])
		} else {
			a := pick(k.a)
			values, f.keys = append(values, "{a}", a), append(f.keys, a)
		}
		if k.b != nil {
			values = append(values, "{b}", pick(k.b))
		}
		insert := strings.NewReplacer(values...)
		f.text = insert.Replace(k.texts[2*r.IntN(len(k.texts)/2)+heldOut])
		f.text = strings.ToUpper(f.text[:1]) + f.text[1:]
		f.keys[0] = strings.ToUpper(f.keys[0][:1]) + f.keys[0][1:]
		if !strings.Contains(f.text, f.keys[0]) {
			f.keys[0] = about[i]
		}
		f.question = insert.Replace(k.question)
		facts[i] = f
	}
	r.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	return facts
}

// isRecalled reports whether a text has all keys of a fact.
func (f fact) isRecalled(text string) bool {
	return !slices.ContainsFunc(f.keys, func(key string) bool { return !strings.Contains(text, key) })
}

// fillerTexts returns the routine sentences of a kind of context. {n} is a number, {w} a
// word, {p} a path.
func fillerTexts(context string) []string {
	switch context {
	case "real prose":
		var list []string
		for _, name := range []string{"gateway", "steps", "stores", "hooks", "machines"} {
			data, err := os.ReadFile(filepath.Join(measure.Root, "docs", name+".md")) //nolint:gosec // G304: a file of the repository
			if err != nil {
				return []string{err.Error()}
			}
			for s := range strings.SplitAfterSeq(string(data), ". ") {
				if s = strings.Join(strings.Fields(s), " "); len(s) > 40 && len(s) < 300 && !strings.Contains(s, "|") {
					list = append(list, s)
				}
			}
		}
		return list
	case "design":
		return []string{
			"The section about {w} describes how a request travels through the layers and where it is validated.", "A diagram of the {w} shows {n} boxes, and the arrows follow the order of the calls.",
			"Another option for the {w} would be a separate process, with its own lifecycle and its own releases.", "The interface has a method for reading and one for writing, and both take a context.",
			"Compare the earlier draft in {p}, which uses the same terms for the {w}.", "We went through the {w} line by line and fixed the wording.", "Most of the discussion was about naming the {w}, and about the order of the arguments.",
			"The glossary got an entry for {w}, with an example.", "The page lists the states of a {w}: new, active, paused and closed.", "Version {n} of the sketch moves the {w} to the left side.",
		}
	case "log":
		return []string{
			"2026-11-{d}T10:{m}:{m}Z INFO request served path={p} status=200 bytes={n} duration={d}ms", "2026-11-{d}T11:{m}:{m}Z DEBUG cache hit key={w}-{n} ttl={d}s",
			"2026-11-{d}T12:{m}:{m}Z INFO worker {d} took job {n} from the queue {w}", "2026-11-{d}T13:{m}:{m}Z INFO heartbeat of node-{d} in {m} ms", "2026-11-{d}T14:{m}:{m}Z DEBUG opened {p} ({n} bytes)",
			"2026-11-{d}T15:{m}:{m}Z INFO flushed {n} records of {w}", "2026-11-{d}T16:{m}:{m}Z INFO session {n} of {w} closed by the client",
		}
	case "research":
		return []string{
			"The related work section discusses {n} papers on {w}, most of which study smaller samples.", "We read the appendix of the paper about {w} and noted the notation.", "Figure {d} plots {w} over time, with one line for each setting.",
			"The notebook in {p} loads the data, cleans the column {w} and draws a histogram.", "A reading group talked about {w} and compared several definitions of it.", "The abstract was shortened by {d} words and now starts with {w}.",
			"There is a long tradition of work on {w}, beginning with surveys and ending with simulations.", "The table in {p} repeats the numbers of the earlier report for {w}.", "Reviewer two asked for more background on {w}.", "The script printed {n} lines about {w}, all of them as expected.",
		}
	case "support":
		return []string{
			"Hello, thank you for contacting us about your {w}, we are happy to help you with it.", "I opened the page, clicked on {w}, scrolled down and took a screenshot for you.", "Could you please tell me the version of your browser and the time when you saw the {w}?",
			"I have forwarded the screenshot of the {w} to my colleagues on the second floor.", "Thanks for waiting, the page about {w} loads normally here, with {d} entries.", "Have a nice day, and feel free to write again about the {w}.",
			"The customer says hello and sends a picture of the {w}.", "The chat was idle for {d} minutes while the customer looked for the {w}.", "I have read the article in {p} about the {w} with the customer.", "We walked through the menu {w} together, step {d}.",
		}
	}
	return []string{
		"I read {p} and followed the call of {w} through the package.", "The function {w} takes a context and a list, and returns the number of entries and an error.", "Ran the tests of {p} again: {n} passed.", "The output has {n} lines; the part about {w} looks like the one of yesterday.",
		"Next I look at {p}, where {w} is defined, and print its value in a loop.", "The loop in {p} visits each {w} once and calls the handler.", "Added a line of debug output to {p} and removed it again.", "git diff shows {d} changed lines in {p}, all of them about {w}.",
		"Stepping through {w} with the debugger shows the values of the first {d} entries.", "The comment above {w} explains the order of the arguments.",
	}
}

// fillerWords are the words of the filler.
var fillerWords = strings.Fields("button panel header footer table column entry widget margin parser module folder branch record window screen letter number sample method signal buffer stream reader writer header client server cursor pointer anchor banner ticket string vector matrix corpus figure legend series bucket corner border shadow option toggle slider dialog prompt editor viewer player folder packet socket thread kernel driver filter mapper reducer merger splitter router bridge switch tunnel portal garden")

// makeTurns returns about size bytes of filler in turns, with the facts between its
// sentences.
func makeTurns(r *rand.Rand, context string, facts []fact, size int) []string {
	texts := fillerTexts(context)
	separator := " "
	if context == "log" {
		separator = "\n"
	}
	list := make([]string, turns)
	order := r.Perm(turns)
	for i := range list {
		planted := slices.Index(order[:len(facts)], i)
		var b strings.Builder
		most := size * (1 + i%7) / (4 * turns)
		at := r.IntN(max(most, 1))
		for b.Len() < most || planted >= 0 {
			if planted >= 0 && b.Len() >= at {
				b.WriteString(facts[planted].text + separator)
				planted = -1
				continue
			}
			word := fillerWords[r.IntN(len(fillerWords))] + "_" + fillerWords[r.IntN(len(fillerWords))]
			if context != "debugging" && context != "log" {
				word = strings.ReplaceAll(word, "_", " ")
			}
			path := fmt.Sprintf("src/%s/%s.go", fillerWords[r.IntN(len(fillerWords))], fillerWords[r.IntN(len(fillerWords))])
			b.WriteString(strings.NewReplacer("{n}", fmt.Sprint(100+r.IntN(9000)), "{w}", word, "{p}", path, "{d}", fmt.Sprintf("%02d", 1+r.IntN(30)), "{m}", fmt.Sprint(10+r.IntN(50))).Replace(texts[r.IntN(len(texts))]) + separator)
		}
		list[i] = strings.TrimSpace(b.String())
	}
	return list
}
