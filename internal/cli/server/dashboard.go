package server

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/live"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi"
)

// dashboard knows where a person can look on. That is at any server that is
// alive on the data directory; where there is none, this process becomes one,
// for as long as it lives.
type dashboard struct {
	surface *surface

	mu sync.Mutex
	// end ends the server that this process has become; nil while it is none.
	end   context.CancelFunc
	ended chan struct{}
}

func newDashboard(s *surface) *dashboard { return &dashboard{surface: s} }

// url gives the address of a session document's page, or of the first page.
func (d *dashboard) url(ctx context.Context, sessionID string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	address, ok := LiveServer(ctx, d.surface.cfg)
	if !ok {
		var err error
		if address, err = d.listen(ctx); err != nil {
			return "", err
		}
	}
	return pageOf(address, sessionID), nil
}

// live is url where a server is alive already, and else "".
func (d *dashboard) live(ctx context.Context, sessionID string) string {
	address, ok := LiveServer(ctx, d.surface.cfg)
	if !ok {
		return ""
	}
	return pageOf(address, sessionID)
}

func pageOf(address, sessionID string) string {
	page := url.URL{Scheme: "http", Host: address, Path: "/"}
	if sessionID != "" {
		page.Path = "/dashboard/" + sessionID
	}
	return page.String()
}

// LiveServer gives the address of a server that is alive on the data directory.
func LiveServer(ctx context.Context, cfg *config.Config) (string, bool) {
	s, ok := live.Find(ctx, serversDir(cfg), func(ctx context.Context, address string) bool {
		ctx, cancel := context.WithTimeout(ctx, app.ServerProbeTimeout)
		defer cancel()
		ours, _ := AsksHealth(ctx, "http://"+address+"/api/health")
		return ours
	})
	return s.Address, ok
}

// listen makes this process a server.
func (d *dashboard) listen(ctx context.Context) (string, error) {
	d.stop() // a server of ours that no longer answers
	handler, err := d.surface.handler(nil)
	if err != nil {
		return "", err
	}
	listener, err := listenNear(ctx, d.surface.cfg.Listen)
	if err != nil {
		return "", err
	}
	log := d.surface.app.Logger(d.surface.cfg)
	withdraw, err := announce(d.surface.cfg, listener.Addr())
	if err != nil {
		_ = listener.Close()
		return "", err
	}
	// It lives on after the call that it was begun for.
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	d.end, d.ended = end, ended
	go func() {
		defer close(ended)
		defer withdraw()
		if err := httpapi.Serve(lifetime, listener, handler); err != nil {
			log.Error("the dashboard ended", "error", err)
		}
	}()
	return reachable(listener.Addr()), nil
}

// stop ends the server that this process has become.
func (d *dashboard) stop() {
	if d.end == nil {
		return
	}
	d.end()
	<-d.ended
	d.end = nil
}

func (d *dashboard) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
}

// announce tells other processes that this one listens.
func announce(cfg *config.Config, addr net.Addr) (withdraw func(), err error) {
	return live.Announce(serversDir(cfg), live.Server{PID: os.Getpid(), Address: reachable(addr), Since: time.Now().UTC()})
}

// reachable is an address under which this machine reaches a listener.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// listenNear listens on an address, or on the next port that is free.
func listenNear(ctx context.Context, address string) (net.Listener, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "listen on %s: %w", address, err)
	}
	first, err := strconv.Atoi(text)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "listen on %s: %w", address, err)
	}
	const tries = 20
	var config net.ListenConfig
	for port := first; port < first+tries && port <= 65535; port++ {
		if l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "listen for the dashboard: %w", err).
			WithFix("guideway serve --listen 127.0.0.1:3000")
	}
	return l, nil
}

// AsksHealth says whether a Guideway is at an address.
func AsksHealth(ctx context.Context, url string) (bool, error) {
	status, text, err := Visit(ctx, url)
	if err != nil {
		return false, err
	}
	var body struct {
		Status string `json:"status"`
	}
	return status == http.StatusOK && json.Unmarshal(text, &body) == nil && body.Status == "ok", nil
}

// Visit asks a server on this machine, itself and nothing in between, for a small
// page.
func Visit(ctx context.Context, url string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, // and no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	answer, err := client.Do(req)
	if err != nil {
		return 0, nil, errors.Unwrap(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	return answer.StatusCode, body, err
}
