package summary

import (
	"fmt"
	"strings"
)

// fact is a planted sentence. It was kept if all its marks are in the summary.
type fact struct {
	kind, text string
	marks      []string
}

// kindRefused is the kind of facts that are outputs which the server refused.
const kindRefused = "refused"

// kinds are the kinds of planted facts. In each sentence the words between * are its marks.
// All sentences were written before the summary was tuned.
func kinds() []struct{ name, sentences string } {
	return []struct{ name, sentences string }{
		{"decision", `We decided to store the offsets in *cursor_table* instead of the queue.
Chose *zstd level 3* over gzip because the archive is read more often than written.
Decision: the retry limit is *7 attempts*.
After the comparison I went with *RFC 9535* paths and dropped the home-made syntax.
The team agreed on *port 8443* for the admin listener.
We will keep the *v1 endpoint* until the March release.
I settled on a *blue-green* rollout.
Picked *pgx* as the driver; the standard one lacks batching.
Design decision: one writer per *shard group*.
Opted for *soft delete* with a purge after 30 days.`},
		{"cause", `The cause is a missing flush in *journal/tail.go*.
Root cause: the lease is renewed *after* the *heartbeat timer* has fired.
Replicas diverge because the clock of *node-14* runs 90 s ahead.
The timeout comes from the *DNS resolver*, which tries IPv6 first.
It turned out that *migration 0042* had dropped the index.
The leak stems from the *watcher goroutine* that nobody stops.
The wrong totals were due to *banker's rounding* in the exporter.
What broke the build was the upgrade of *protoc-gen 1.31*.
The crash happens since *buildConfig* returns nil on Windows.
The duplicates are caused by the *at-least-once* delivery of the bus.`},
		{"demand", `The user wants no new dependency and the fix *before Tuesday*.
The customer insists that *invoice numbers* never have gaps.
Security requires that *audit.log* stays append-only.
The maintainer asked to leave *public API* names alone.
We must not touch *legacy/billing*, said the owner.
Legal demands that *consent records* be kept for ten years.
The reviewer wants *table tests* for each parser.
The p99 has to stay below *35 ms*, as the operators demanded.
The user forbade calls to *external services* in tests.
Requirement from the product owner: *offline mode* works for a week.`},
		{"question", `Open question: who rotates the *signing key*?
It is still unclear whether *tenant 9* uses the old importer.
Not decided yet: the name of the *metrics namespace*.
Should the *cleanup job* run on read replicas as well?
To be clarified with the vendor: the *rate limit* of the sandbox.
We do not know yet why *checksum 77ab* appears twice.
Does the *mobile client* rely on the order of the fields?
Pending: the answer of the DBA about *partition pruning*.
Open: whether *Windows ARM* builds are needed.
TBD: the owner of the *fallback queue*.`},
		{kindRefused, `All tests of *module alpha* pass, trust me.
Skipped the load test since *gamma rig* was busy.
The review of *crypto.go* is not needed.
Coverage of *parser_x* was estimated, not measured.
I deployed *build 311* without the canary.
The checklist for *region eu-3* is complete except two lines.
Merged *PR 5521* with a red pipeline.
The backup of *volume d7* was not verified.
Signed off *ticket OPS-88* on behalf of the owner.
The migration of *orders_2019* ran without a dry run.`},
		{"evidence", `Evidence: go test ./store printed *412 passed*.
Verified with curl: the endpoint returns *HTTP 207* for partial results.
The load test confirmed *1,870 requests* per second.
Measured: startup takes *640 ms* on the small machine.
The log shows *connection reset* at 14:03:22.
Reproduced the fault in *3 of 20* runs under the race detector.
The profile proves that *json.Unmarshal* takes 61 % of the time.
Exit code *137* and an OOM line in dmesg.
Benchmark result: *2.4x faster* with the pool.
The bisect ended at commit *9fc31be*.`},
		{"rejected", `Ruled out: a full rewrite of *scheduler v2*.
Redis was rejected because of the *persistence* setup.
Did not take the *trigger approach*, since it locks the table.
We considered *gRPC streaming* and discarded it.
The idea of a *global mutex* was dropped.
It is not the *load balancer*: the fault also shows without it.
Caching at the *edge tier* does not help, so it is off the list.
Vetoed: the vendored fork of *yaml.v2*.
An *event-sourced* design would be too much for this.
The hypothesis of *packet loss* was disproved by the capture.`},
		{"workaround", `Setting *GODEBUG=netdns=go* hides the fault for now.
As a workaround, restart *worker 3* each night.
Until the fix is released, pin *libfoo 2.8.1*.
Temporary measure: the *feature flag* fast_path is off.
One can get by with *--no-cache* on the first call.
Disabled *test_sync_large* for the time being.
The *manual export* bridges the gap until Friday.
A *shim for Node 18* keeps the old plugin alive.
Raising *ulimit 65536* avoids the error on the build host.
In the meantime the *cron entry* repairs the table.`},
		{"change", `Renamed *UserCache* to SessionCache in twelve files.
Added *index idx_due* on the invoices.
The default of *maxBatch* is now 250.
Moved the parser to *internal/lex*.
Deleted the unused *flag --turbo*.
Split *handler.go* into three files.
The config file is read from */etc/app.d* from now on.
Replaced the regexp in *slug.py* by a table.
Bumped *golang.org/x/net* to 0.38.
The schema has a new column *retired_at*.`},
		{"remaining", `Next: wire the *quota check* into the upload path.
Still to do: translate *error E-55*.
TODO: remove the *compat layer* after the release.
The *ARM image* remains to be published.
Not done: the docs of *admin commands*.
What is left is the *rollback script*.
Follow-up: tell the *data team* about the new topic.
I have not yet run the *soak test*.
Remaining work: *three call sites* in the exporter.
Later we need to backfill *column region_id*.`},
	}
}

// plantedFacts returns n facts of each kind, all kinds in turn.
func plantedFacts(n int) []fact {
	var list []fact
	for i := range n {
		for _, k := range kinds() {
			line := strings.Split(k.sentences, "\n")[i]
			parts := strings.Split(line, "*")
			f := fact{kind: k.name, text: strings.ReplaceAll(line, "*", "")}
			for at := 1; at < len(parts); at += 2 {
				f.marks = append(f.marks, parts[at])
			}
			list = append(list, f)
		}
	}
	return list
}

// sampleOutput returns the plain sentence of a step of a synthetic run.
func sampleOutput(i int) string {
	verbs := []string{"Read", "Compared", "Walked through", "Opened", "Looked at", "Checked the layout of", "Listed the callers of", "Tidied"}
	areas := []string{"the importer", "the scheduler", "the billing page", "the search index", "the mailer", "the session store", "the report view"}
	ends := []string{"and noted the parts that matter.", "and found it as described.", "line by line.", "with the help of the notes.", "before going on."}
	return fmt.Sprintf("%s %s in pkg%d/file_%03d.go %s", verbs[i%len(verbs)], areas[i%len(areas)], i%13, i, ends[i%len(ends)])
}

// roundOutput returns the output of a round of a loop.
func roundOutput(i int) string {
	return fmt.Sprintf("Migrated file_%03d.go to the new client. All %d call sites compile and the unit tests of the package are green.", i, 3+i*7%11)
}
