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

// sealer signs what a client hands back, and tells its own from others'.
type sealer struct {
	key []byte
	now func() time.Time
}

// state is what an answer that asks for input lets the client hand back. It is
// good for one owner (see Client.owner) and one tool.
type state struct {
	User string `json:"u"`
	Tool string `json:"t"`
	// Parked names a call that waits with us, and Turn the question that it
	// waits for.
	Parked string `json:"p,omitempty"`
	Turn   int    `json:"n,omitempty"`
	// Upstream is the upstream's own state.
	Upstream string `json:"s,omitempty"`
	Expires  int64  `json:"e"`
}

// stateTime is how long a question may stay open.
const stateTime = 30 * time.Minute

var errState = errors.New("the requestState is not one of this call, or is too old")

func (s sealer) mac(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("gateway state\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s sealer) seal(st state) string {
	st.Expires = s.now().Add(stateTime).Unix()
	text, _ := json.Marshal(st) // texts and numbers always marshal
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + s.mac(body)
}

// open gives the state that was sealed for a user and a tool.
func (s sealer) open(sealed, user, tool string) (state, error) {
	body, mac, _ := strings.Cut(sealed, ".")
	if !hmac.Equal([]byte(mac), []byte(s.mac(body))) {
		return state{}, errState
	}
	var st state
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &st) != nil || st.User != user || st.Tool != tool || st.Expires < s.now().Unix() {
		return state{}, errState
	}
	return st, nil
}
