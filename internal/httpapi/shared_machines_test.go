package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
)

// Members of a project use each other's machine runs in it, each as far as the roles allow.
// Others, and the project's members in other projects, see nothing of them.
func TestMembersShareMachineRuns(t *testing.T) {
	t.Parallel()
	s, _ := newMatrixRig(t)
	olga, vic, otto := s.login(t, "olga", guideway.RoleOperator), s.login(t, "vic", guideway.RoleViewer), s.login(t, "otto", guideway.RoleOperator)
	ada, eve := s.login(t, "ada", guideway.RoleApprover), s.login(t, "eve", guideway.RoleAdmin)
	start := func(who credential, user, project string) driver.Status {
		var got machineAnswer
		s.wantStatus(t, http.StatusCreated, who, "POST", "/api/machine-runs", `{"machine":"desk","inputs":{"request":"x"}`+project+`}`).decodeInto(t, &got)
		st, err := s.machines.Wait(t.Context(), run.Caller{Principal: guideway.Principal{User: user}}, got.Run.RunID, 20*time.Second)
		if err != nil || st.Question == "" {
			t.Fatalf("the run is %+v, %v", st, err)
		}
		return *st
	}
	inProject := `,"project":{"id":"` + projectA + `"}`
	shared, private, planted := start(olga, "olga", inProject), start(olga, "olga", ""), start(eve, "eve", inProject)
	input := func(st driver.Status) string { return `{"question":"` + st.Question + `","value":"yes"}` }
	tries := func(st driver.Status) [][3]string {
		path := "/api/machine-runs/" + st.RunID
		return [][3]string{
			{"GET", path},
			{"GET", path + "/events"},
			{"GET", path + "/stream"},
			{"POST", path + "/input", input(st)},
			{"POST", path + "/resume", `{"states":100}`},
			{"POST", path + "/cancel", "{}"},
			{"POST", path + "/fork", "{}"},
		}
	}
	for name, tt := range map[string]struct {
		who credential
		run driver.Status
	}{
		"a stranger":             {eve, shared},
		"a private run":          {otto, private},
		"a private run, read":    {ada, private},
		"a run of a stranger":    {otto, planted},
		"a stranger's, approved": {ada, planted},
	} {
		for _, try := range tries(tt.run) {
			if got := s.sendRequest(t, tt.who, try[0], try[1], try[2]); got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s %s: %d %s", name, try[0], try[1], got.StatusCode, got.body)
			}
		}
	}
	for _, try := range tries(shared)[3:] {
		s.wantCode(t, http.StatusForbidden, guideway.CodeForbidden, vic, try[0], try[1], try[2])
	}
	for user, who := range map[string]credential{"vic": vic, "otto": otto, "ada": ada} {
		list := string(s.wantStatus(t, 200, who, "GET", "/api/machine-runs", "").body)
		if !strings.Contains(list, shared.RunID) || strings.Contains(list, private.RunID) || strings.Contains(list, planted.RunID) {
			t.Errorf("%s sees %s", user, list)
		}
		s.wantStatus(t, 200, who, "GET", "/api/machine-runs/"+shared.RunID, "")
		s.wantStatus(t, 200, who, "GET", "/api/machine-runs/"+shared.RunID+"/events", "")
	}
	if list := string(s.wantStatus(t, 200, eve, "GET", "/api/machine-runs", "").body); strings.Contains(list, shared.RunID) || !strings.Contains(list, planted.RunID) {
		t.Errorf("a stranger sees %s", list)
	}
	// An operator works on the run, and does not approve.
	path := "/api/machine-runs/" + shared.RunID
	if got := s.sendRequest(t, otto, "POST", path+"/input", input(shared)); got.StatusCode < 400 {
		t.Errorf("an operator approves: %d %s", got.StatusCode, got.body)
	}
	var fork machineAnswer
	s.wantStatus(t, http.StatusCreated, otto, "POST", path+"/fork", "{}").decodeInto(t, &fork)
	s.wantStatus(t, 200, olga, "GET", "/api/machine-runs/"+fork.Run.RunID, "") // the fork is in the project, too
	s.wantStatus(t, 200, ada, "POST", path+"/input", input(shared))
	st, err := s.machines.Wait(t.Context(), run.Caller{Principal: guideway.Principal{User: "olga"}}, shared.RunID, 20*time.Second)
	if err != nil || !st.Status.Ended() {
		t.Errorf("after the approval the run is %+v, %v", st, err)
	}
	events, err := s.machines.Events(t.Context(), run.Caller{Principal: guideway.Principal{User: "olga"}}, shared.RunID)
	byAda := 0
	for _, e := range events {
		if e.By.User == "ada" {
			byAda++
		}
	}
	if err != nil || byAda == 0 {
		t.Errorf("no event is by ada: %v, %v", events, err)
	}
}
