package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// sealer signs request states and verifies returned ones.
type sealer struct {
	key []byte
	now func() time.Time
}

// state is the request state that a client returns with its answer. It is valid for one
// owner (see Client.stateOwner) and one tool, prompt or resource.
type state struct {
	User string `json:"u"`
	Tool string `json:"t"`
	// Parked identifies a parked call, and Turn the question that it waits for.
	Parked string `json:"p,omitempty"`
	Turn   int    `json:"n,omitempty"`
	// Upstream is the upstream's request state.
	Upstream string `json:"s,omitempty"`
	// Held identifies the held call of a form, and Asked is the time of the form in
	// milliseconds.
	Held  string `json:"h,omitempty"`
	Asked int64  `json:"a,omitempty"`
	// Approved identifies the binding of a call that a person approved and that was sent.
	Approved string `json:"b,omitempty"`
	// Login reports that the question was to open the page for a login.
	Login   bool  `json:"l,omitempty"`
	Expires int64 `json:"e"`
}

// stateTime is the lifetime of a question.
const stateTime = 30 * time.Minute

var errState = errors.New("the requestState is invalid, belongs to another call or has expired; repeat the call without it")

func (s sealer) signText(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("gateway state\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s sealer) sealState(st state) string {
	st.Expires = s.now().Add(stateTime).Unix()
	text, _ := json.Marshal(st) // Strings and numbers always marshal.
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + s.signText(body)
}

// openState verifies and returns a state that was sealed for a user and a tool, prompt or
// resource.
func (s sealer) openState(sealed, user, tool string) (state, error) {
	body, mac, _ := strings.Cut(sealed, ".")
	if !hmac.Equal([]byte(mac), []byte(s.signText(body))) {
		return state{}, errState
	}
	var st state
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &st) != nil || st.User != user || st.Tool != tool || st.Expires < s.now().Unix() {
		return state{}, errState
	}
	return st, nil
}
