package mcpserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
)

// formLife is how long a person has to answer a form.
const formLife = 10 * time.Minute

// formState says which question a form is the answer to. It travels through the
// client and back, sealed.
type formState struct {
	User    string `json:"u"`
	Run     string `json:"r"`
	Handle  string `json:"h"`
	Gate    string `json:"g"`
	Expires int64  `json:"e"` // Unix time in seconds
	Nonce   string `json:"n"`
}

// forms seals the states of forms and takes each back once. The key is the
// process's own: a form does not outlive the server that made it, so that what
// was used can be remembered in memory.
type forms struct {
	key []byte
	now func() time.Time

	mu sync.Mutex
	// used are the nonces of forms that came back, with when they expire.
	used map[string]time.Time
}

func newForms(now func() time.Time) *forms {
	f := &forms{key: make([]byte, sha256.Size), now: now, used: map[string]time.Time{}}
	_, _ = rand.Read(f.key) // never fails: the process ends instead
	return f
}

// seal makes the state that goes out with a form. It sets expiry and nonce.
func (f *forms) seal(s formState) string {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce)
	s.Nonce = base64.RawURLEncoding.EncodeToString(nonce)
	s.Expires = f.now().Add(formLife).Unix()
	text, _ := json.Marshal(s) // strings and a number always marshal
	payload := base64.RawURLEncoding.EncodeToString(text)
	return payload + "." + f.mac(payload)
}

func (f *forms) mac(payload string) string {
	h := hmac.New(sha256.New, f.key)
	h.Write([]byte("guideway gate form\n" + payload))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// The ways in which a form does not belong to a call.
var (
	errFormUnknown = errors.New("the form was not made by this server, or was changed")
	errFormForeign = errors.New("the form belongs to another call")
	errFormExpired = errors.New("the form has expired")
	errFormUsed    = errors.New("the form was used before")
)

// redeem opens the state that came back with a call of user about handle, and
// uses it up.
func (f *forms) redeem(sealed, user, handle string) (formState, error) {
	payload, mac, _ := strings.Cut(sealed, ".")
	// The text is compared, not what it decodes to: base64 has several texts
	// for the same bytes.
	if !hmac.Equal([]byte(mac), []byte(f.mac(payload))) {
		return formState{}, errFormUnknown
	}
	var s formState
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return formState{}, errFormUnknown
	}
	now := f.now()
	switch {
	case s.User != user || s.Handle != handle:
		return formState{}, errFormForeign
	case now.Unix() >= s.Expires:
		return formState{}, errFormExpired
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.used[s.Nonce]; ok {
		return formState{}, errFormUsed
	}
	for nonce, expires := range f.used {
		if now.After(expires) {
			delete(f.used, nonce)
		}
	}
	f.used[s.Nonce] = time.Unix(s.Expires, 0)
	return s, nil
}
