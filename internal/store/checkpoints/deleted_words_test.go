package checkpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/testutil/planted"
)

// TestDeletedWords plants 200 words in checkpoints and session documents, and checks that
// after each kind of deletion no file of the data directory contains the deleted ones, while
// other processes have the store open. What is kept stays readable.
func TestDeletedWords(t *testing.T) {
	t.Parallel()
	for _, store := range []string{StoreSQLite, StoreFiles} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			o := Options{DataDir: t.TempDir(), Store: store}
			c, other := openTest(t, o), openTest(t, o)
			words := planted.Words(200)
			take := func(n int) (list []string) {
				list, words = words[:n], words[n:]
				return list
			}
			absent := func(after string, list []string) {
				t.Helper()
				if found := planted.Find(t, o.DataDir, list); len(found) > 0 {
					t.Errorf("after %s, %d places still have words: %v", after, len(found), found[:min(4, len(found))])
				}
			}
			// Neighbors in the index share pages and segments with the deleted words.
			saveText(t, c, "kept", `{"notes":"a session that stays"}`)
			var ids []string
			var single []string
			for i := range 4 {
				own := take(10)
				single = append(single, own...)
				saved, err := c.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{
					Session: "single", Name: own[0], Tags: own[1:3], Context: fmt.Appendf(nil, `{"round":%d,"notes":%q}`, i, strings.Join(own[3:], " ")),
				})
				requireNoError(t, err)
				ids = append(ids, saved.ID)
			}
			whole, old := take(40), take(40)
			saveText(t, other, "whole", fmt.Sprintf(`{"notes":%q}`, strings.Join(whole, " ")))
			saveText(t, c, "old", fmt.Sprintf(`{"notes":%q}`, strings.Join(old[:20], " ")))
			saveText(t, c, "old", fmt.Sprintf(`{"notes":%q}`, strings.Join(old[20:], " ")))
			if found := planted.Find(t, o.DataDir, single[:3]); len(found) == 0 {
				t.Error("the test finds no planted word before the deletions")
			}
			if hits, err := other.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Query: single[3]}); err != nil || len(hits.Checkpoints) != 1 {
				t.Errorf("a planted word finds %+v, %v", hits, err)
			}

			_, err := c.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: ids})
			requireNoError(t, err)
			absent("the deletion of checkpoints", single)
			_, err = c.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{Session: "whole"})
			requireNoError(t, err)
			absent("the deletion of a session", whole)
			_, err = other.Cleanup(t.Context(), checkpoint.CleanupRequest{User: testPrincipal().User, KeepLast: 1})
			requireNoError(t, err)
			absent("a cleanup", old[:20])
			checkLast(t, c, "kept", `{"notes":"a session that stays"}`)
			checkLast(t, c, "old", fmt.Sprintf(`{"notes":%q}`, strings.Join(old[20:], " ")))
			testPurgedDocument(t, o.DataDir, take(80), absent)
		})
	}
}

// testPurgedDocument checks that no file contains the words of an erased session document.
func testPurgedDocument(t *testing.T, dir string, words []string, absent func(string, []string)) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, databaseName)})
	requireNoError(t, err)
	defer s.Close()
	now := time.Now()
	d := session.Document{
		Ref: session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "d"}, Created: now, Updated: now, Revision: 1,
		Data: map[string]any{"dashboard": words[0], "notes": strings.Join(words[1:60], " ")},
	}
	requireNoError(t, s.CreateDocument(t.Context(), d, []session.LogEntry{{At: now, Revision: 1, Pointer: "/notes", Message: words[60]}}))
	_, err = s.UpdateDocument(t.Context(), d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d.Data = map[string]any{"notes": json.Number("1"), "more": strings.Join(words[61:], " ")}
		return d, nil, nil
	})
	requireNoError(t, err)
	requireNoError(t, s.DeleteDocument(t.Context(), d.Ref, now))
	requireNoError(t, s.PurgeDocument(context.WithoutCancel(t.Context()), d.Ref))
	absent("the erasure of a session document", words)
}
