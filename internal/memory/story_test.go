package memory

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
)

// A story that was kept at any event, and read on by another process, tells what one
// tells that was read from the beginning.
func TestKeptStoryGoesOn(t *testing.T) {
	t.Parallel()
	kinds := []guide.EventKind{
		guide.EventStepCompleted, guide.EventStepCompleted, guide.EventStepCompleted, guide.EventPhaseExited,
		guide.EventLoopEntered, guide.EventLoopEnded,
	}
	fact := rapid.Custom(func(t *rapid.T) guide.Event {
		e := guide.Event{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Step: rapid.SampledFrom([]string{"plan", "edit", "check"}).Draw(t, "step"),
			Round: rapid.IntRange(0, 2).Draw(t, "round"),
		}
		if e.Kind == guide.EventStepCompleted {
			e.Output = rapid.StringMatching(`([A-Z<é][a-z]{1,8}( [a-z0-9]{1,8}){1,4}\. ){1,3}`).Draw(t, "output")
			e.Vars = map[string]any{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"): rapid.IntRange(0, 3).Draw(t, "value")}
		}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		whole, other := newStory(), newStory()
		for i, f := range rapid.SliceOfN(fact, 1, 120).Draw(t, "facts") {
			data, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			e := run.Event{Seq: int64(i) + 1, Kind: string(f.Kind), Data: data, MAC: []byte{byte(i)}}
			whole.add("r_a", e)
			other.add("r_a", e)
			if rapid.IntRange(0, 9).Draw(t, "keep") > 0 {
				continue
			}
			g, err := other.gist()
			if err != nil {
				t.Fatal(err)
			}
			if other = storyOf(&g); other == nil {
				t.Fatalf("what was kept does not read: %s", g.Data)
			}
		}
		if d := cmp.Diff(fmt.Sprintf("%+v", whole.tell()), fmt.Sprintf("%+v", other.tell())); d != "" {
			t.Fatalf("kept stories tell (-want +got):\n%s", d)
		}
	})
}

// What cannot be of this form is no story, and no panic.
func TestWhatIsNoStory(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "null", "[]", `{"form":0}`, `{"form":2,"steps":3}`, `{"form":1,"chapters":3}`, `{"form":1`} {
		if st := storyOf(&run.Gist{Seq: 3, Data: []byte(data)}); st != nil {
			t.Errorf("%q is the story %+v", data, st.tell())
		}
	}
}
