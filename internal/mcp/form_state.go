package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"
)

// formLifetime is the time that a person has to answer a form.
const formLifetime = 10 * time.Minute

// formState identifies the question of a form. The client receives it sealed, and returns
// it with the answer.
type formState struct {
	User    string `json:"u"`
	Client  string `json:"c"`
	Run     string `json:"r"`
	Handle  string `json:"h"`
	Gate    string `json:"g"`
	Expires int64  `json:"e"` // Unix time in seconds
	Asked   int64  `json:"a"` // Unix time in milliseconds
	Nonce   string `json:"n"`
}

// formPlace identifies a position of a run and the client that asks a person about it.
type formPlace struct{ user, client, handle string }

// formStore seals the states of forms, and accepts each state once. At most one form is open
// at a place. The key and the states are in memory only: a form is not valid after a restart
// of the server.
type formStore struct {
	key []byte
	now func() time.Time

	mu sync.Mutex
	// used maps the nonces of returned forms to their expiry.
	used map[string]time.Time
	// open maps a place to the form that is open there.
	open map[formPlace]formState
}

func newForms(now func() time.Time) *formStore {
	f := &formStore{key: make([]byte, sha256.Size), now: now, used: map[string]time.Time{}, open: map[formPlace]formState{}}
	_, _ = rand.Read(f.key) // Read never returns an error; it ends the process instead.
	return f
}

// openForm opens a form and returns its sealed state. It sets expiry and nonce. If a form
// is already open at the place, it returns the state of that form instead, and sealed is
// empty.
func (f *formStore) openForm(s formState) (sealed string, open formState) {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce)
	s.Nonce = base64.RawURLEncoding.EncodeToString(nonce)
	now := f.now()
	s.Asked, s.Expires = now.UnixMilli(), now.Add(formLifetime).Unix()
	place := formPlace{s.User, s.Client, s.Handle}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.open, func(_ formPlace, o formState) bool { return now.Unix() >= o.Expires })
	if open, ok := f.open[place]; ok {
		return "", open
	}
	f.open[place] = s
	text, _ := json.Marshal(s) // Strings and a number always marshal.
	payload := base64.RawURLEncoding.EncodeToString(text)
	return payload + "." + f.signPayload(payload), s
}

// closeForm removes a form from the open ones. An answer to it is still accepted.
func (f *formStore) closeForm(s formState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	place := formPlace{s.User, s.Client, s.Handle}
	if f.open[place].Nonce == s.Nonce {
		delete(f.open, place)
	}
}

func (f *formStore) signPayload(payload string) string {
	h := hmac.New(sha256.New, f.key)
	h.Write([]byte("guideway gate form\n" + payload))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// The errors of redeemState.
var (
	errFormUnknown = errors.New("the form was changed, or was not made by this server since it started")
	errFormForeign = errors.New("the form was sent to another user or for another handle")
	errFormExpired = errors.New("the form has expired")
	errFormUsed    = errors.New("the form was used before")
)

// redeemState opens the state that a user returned in a call with a handle, and marks the
// state as used.
func (f *formStore) redeemState(sealed, user, handle string) (formState, error) {
	payload, mac, _ := strings.Cut(sealed, ".")
	// Compares the text and not the decoded bytes: several base64 texts decode to the same
	// bytes.
	if !hmac.Equal([]byte(mac), []byte(f.signPayload(payload))) {
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
