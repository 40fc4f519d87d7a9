// Package quality measures the recall of reduced contexts. It contains tests only: go test
// -run Quality -v ./internal/contexts/compress/quality prints the tables of docs/context.md.
package quality

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// fact is a statement planted in a context. It is recalled if the output contains all its
// keys.
type fact struct {
	kind string
	// texts is one sentence, or the old and the new sentence of a superseded fact.
	texts []string
	// keys must all be in the output.
	keys []string
	// stale is the outdated value: the fact counts as wrong if the output contains this
	// value without the keys.
	stale string
	// subject is the topic that a question asks about.
	subject string
}

// The weights were tuned on the kinds that tunedKinds returns. The kinds that reportedKinds
// returns were measured once, at the end. The kinds were divided before the first
// measurement.
func tunedKinds() []string    { return []string{"decision", "error", "path"} }
func reportedKinds() []string { return []string{"identifier", "number", "superseded", "plain"} }

// factSubjects returns the topics of facts. Each context uses some of them, each once.
func factSubjects() []string {
	return []string{
		"export queue", "login cache", "invoice importer", "search index", "session store", "thumbnail worker", "audit trail",
		"billing webhook", "rate limiter", "mail relay", "backup job", "feature switch", "user directory", "metrics agent",
		"payment gateway", "upload handler", "report builder", "token service", "order archive", "config loader", "job scheduler",
		"cart widget", "address parser", "media proxy", "inventory sync", "password reset", "chat bridge", "price engine",
		"tax calculator", "event router", "label printer", "map tiles", "notification hub", "schema registry", "shipping tracker",
		"survey form", "theme editor", "translation memory", "video encoder", "wallet ledger",
	}
}

var (
	tools   = []string{"Kestrel", "Basalt", "Juniper", "Marlin", "Onyx", "Quartz", "Sorrel", "Tamarind", "Umber", "Vesper", "Willow", "Zephyr"}
	persons = []string{"Amara", "Bjorn", "Chiyo", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kavya", "Lucia"}
	units   = []string{"ms", "seconds", "requests", "MB", "connections", "retries", "rows", "percent"}
)

// kindPhrasings returns the sentences of a kind. {s} is the subject, {a} and {b} are values.
func kindPhrasings(kind string) []string {
	switch kind {
	case "decision":
		return []string{
			"We decided to use {a} instead of {b} for the {s}.",
			"After the comparison {a} was picked over {b} to drive the {s}.",
			"The team settled on {a} for the {s}; {b} needs too much care.",
			"For the {s} we go with {a}, since {b} cannot be tested offline.",
			"{b} was rejected and {a} adopted for the {s}.",
			"It was agreed that the {s} will run on {a} and not on {b}.",
			"Decision on the {s}: {a}, because {b} lacks a client for Windows.",
			"{a} wins against {b} in the {s}.",
			"The {s} keeps {a}; moving to {b} was ruled out.",
			"Chose {a} for the {s} (not {b}: its licence does not fit).",
			"As for the {s}, our choice is {a} rather than {b}.",
			"The owner prefers {a} to {b} in the {s}, so that is what we build.",
		}
	case "error":
		return []string{
			"The {s} failed with code {a} while opening {b}.",
			"Error {a} in the {s}: cannot reach {b}.",
			"The {s} stops with {a} as soon as {b} is slow.",
			"panic: {a} in the {s} when {b} is empty.",
			"The {s} returned {a} for every call to {b}.",
			"Exception {a} was raised by the {s} during {b}.",
			"Starting the {s} ends in {a}; {b} is missing.",
			"The {s} crashed: {a} at {b}.",
			"{b} refused the {s} with {a}.",
			"A timeout ({a}) hits the {s} after {b} restarts.",
			"The {s} does not come up: {a}, {b}.",
			"Seen again in the {s}: {a} caused by {b}.",
		}
	case "path":
		return []string{
			"The {s} lives in {a}.", "See {a} for the {s}.", "All of the {s} was moved to {a}.", "The entry point of the {s} is {a}.",
			"{a} holds what the {s} reads at start.", "The change to the {s} went into {a}.", "The {s} writes its output below {a}.",
			"Look at {a} before you touch the {s}.", "Tests of the {s} are found under {a}.", "The {s} takes its settings from {a}.",
			"In {a} the {s} is put together.", "The broken part of the {s} sits in {a}.",
		}
	case "identifier":
		return []string{
			"The {s} is tracked as {a}.", "The ticket for the {s} is {a}.", "Deploys of the {s} carry the tag {a}.",
			"In the {s} the function to change is {a}.", "The {s} is registered under {a}.", "{a} names the running copy of the {s}.",
			"The record of the {s} has the key {a}.", "Ask for {a} when you look for the {s}.", "The {s} was built from {a}.",
			"The flag {a} turns the {s} on.", "The {s} answers to {a}.", "We know the {s} by {a} in the tracker.",
		}
	case "number":
		return []string{
			"The {s} allows {a} {u} at most.", "We measured {a} {u} in the {s}.", "The limit of the {s} is {a} {u}.",
			"At peak the {s} sees {a} {u}.", "The {s} was sized for {a} {u}.", "It took {a} {u} until the {s} was ready.",
			"The {s} loses {a} {u} a day.", "Expect {a} {u} from the {s}.", "The {s} gives up after {a} {u}.",
			"On average the {s} needs {a} {u}.", "The contract of the {s} promises {a} {u}.", "The {s} listens on {a}.",
		}
	case "superseded":
		return []string{
			"The {s} listens on port {v}.|The {s} now listens on port {v}.",
			"The {s} keeps data for {v} days.|The {s} keeps data for {v} days now, as legal asked.",
			"The timeout of the {s} is {v} ms.|The timeout of the {s} was raised to {v} ms.",
			"The owner of the {s} is team-{v}.|Since the move the owner of the {s} is team-{v}.",
			"The {s} reads table t_{v}.|The {s} no longer reads that table, it reads t_{v}.",
			"Releases of the {s} are cut from branch r{v}.|Releases of the {s} are cut from branch r{v} from today on.",
			"The {s} runs version {v}.|The {s} was updated and runs version {v}.",
			"The {s} has {v} replicas.|The {s} has been scaled to {v} replicas.",
			"The bucket of the {s} is b-{v}.|The bucket of the {s} has been renamed to b-{v}.",
			"The quota of the {s} is {v} calls.|New quota of the {s}: {v} calls.",
			"The {s} uses key k{v}.|The {s} switched to key k{v}.",
			"The {s} is due on day {v}.|The {s} is due on day {v} after the delay.",
		}
	default: // plain facts have no number, path or word that indicates their kind
		return []string{
			"{p} looks after the {s}.", "The {s} belongs to {p}.", "Talk to {p} about the {s}.", "{p} wrote most of the {s}.",
			"The {s} is known best by {p}.", "{p} has the keys of the {s}.", "Whoever changes the {s} tells {p}.",
			"{p} will take the {s} over in spring.", "The {s} was handed to {p}.", "{p} reviews what goes into the {s}.",
			"Questions on the {s} go to {p}.", "{p} runs the {s} during the holidays.",
		}
	}
}

// makeFact returns a fact of the kind about the subject.
func makeFact(r *rand.Rand, kind, subject string) fact {
	all := kindPhrasings(kind)
	phrase := all[r.IntN(len(all))]
	f := fact{kind: kind, subject: subject}
	fill := func(text string, pairs ...string) string {
		return strings.NewReplacer(append([]string{"{s}", subject}, pairs...)...).Replace(text)
	}
	switch kind {
	case "decision":
		i := r.IntN(len(tools))
		a, b := tools[i]+randomSuffix(r), tools[(i+1+r.IntN(len(tools)-1))%len(tools)]
		f.texts, f.keys = []string{fill(phrase, "{a}", a, "{b}", b)}, []string{a}
	case "error":
		a := fmt.Sprintf("E%s%d", strings.ToUpper(randomSuffix(r)), 100+r.IntN(900))
		f.texts, f.keys = []string{fill(phrase, "{a}", a, "{b}", "the "+strings.ToLower(tools[r.IntN(len(tools))])+" host")}, []string{a}
	case "path":
		a := fmt.Sprintf("%s/%s/%s_%s.go", []string{"internal", "src", "pkg", "lib"}[r.IntN(4)], randomSuffix(r), randomSuffix(r), randomSuffix(r))
		f.texts, f.keys = []string{fill(phrase, "{a}", a)}, []string{a}
	case "identifier":
		a := []string{
			fmt.Sprintf("%s-%d", strings.ToUpper(randomSuffix(r)), 100+r.IntN(9000)), fmt.Sprintf("%s_%s_id", randomSuffix(r), randomSuffix(r)),
			fmt.Sprintf("%08x%08x", r.Uint32(), r.Uint32()), "apply" + upperFirst(randomSuffix(r)) + upperFirst(randomSuffix(r)),
		}[r.IntN(4)]
		f.texts, f.keys = []string{fill(phrase, "{a}", a)}, []string{a}
	case "number":
		a := fmt.Sprint(1000 + r.IntN(89000))
		f.texts, f.keys = []string{fill(phrase, "{a}", a, "{u}", units[r.IntN(len(units))])}, []string{a}
	case "superseded":
		before, after, _ := strings.Cut(phrase, "|")
		was, is := fmt.Sprint(1000+r.IntN(89000)), fmt.Sprint(1000+r.IntN(89000))
		f.texts = []string{fill(before, "{v}", was), fill(after, "{v}", is)}
		f.keys, f.stale = []string{is}, was
	default:
		p := persons[r.IntN(len(persons))] + randomSuffix(r)
		f.texts, f.keys = []string{fill(phrase, "{p}", p)}, []string{p}
	}
	return f
}

// randomSuffix returns four or five letters that make a value unique and pronounceable.
func randomSuffix(r *rand.Rand) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for range 2 + r.IntN(2) {
		b.WriteByte(consonants[r.IntN(len(consonants))])
		b.WriteByte(vowels[r.IntN(len(vowels))])
	}
	return b.String()
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
