package server

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
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/live"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi"
)

// dashboard finds the address of the dashboard on any live server of the data directory. If
// there is no server, this process starts one that runs until the process ends.
type dashboard struct {
	surface *Surface

	mu sync.Mutex
	// end stops the server that this process has started, or is nil.
	end   context.CancelFunc
	ended chan struct{}
}

func newDashboard(s *Surface) *dashboard { return &dashboard{surface: s} }

// pageURL returns the URL of the page of a session document, or of the start page.
func (d *dashboard) pageURL(ctx context.Context, sessionID string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := FindServerURL(ctx, d.surface.cfg)
	if at == "" {
		address, err := d.startServer(ctx)
		if err != nil {
			return "", err
		}
		at = "http://" + address
	}
	return newPageURL(at, sessionID), nil
}

// livePageURL returns the same URL as pageURL if a server is running, or "".
func (d *dashboard) livePageURL(ctx context.Context, sessionID string) string {
	at := FindServerURL(ctx, d.surface.cfg)
	if at == "" {
		return ""
	}
	return newPageURL(at, sessionID)
}

func newPageURL(at, sessionID string) string {
	if sessionID != "" {
		return at + "/dashboard/" + url.PathEscape(sessionID)
	}
	return at + "/"
}

// FindServerURL returns the URL of the server for people, without a slash at the end: the
// public one, or that of a live server on the data directory, or "".
func FindServerURL(ctx context.Context, cfg *config.Config) string {
	if cfg.PublicURL != "" {
		return strings.TrimSuffix(cfg.PublicURL, "/")
	}
	address, ok := FindLiveServer(ctx, cfg)
	if !ok {
		return ""
	}
	return "http://" + address
}

// FindLiveServer returns the address of a live server on the data directory.
func FindLiveServer(ctx context.Context, cfg *config.Config) (string, bool) {
	s, ok := live.Find(ctx, serversDir(cfg), func(ctx context.Context, address string) bool {
		ctx, cancel := context.WithTimeout(ctx, app.ServerProbeTimeout)
		defer cancel()
		ours, _ := CheckHealth(ctx, "http://"+address+"/api/health")
		return ours
	})
	return s.Address, ok
}

// startServer starts a server in this process.
func (d *dashboard) startServer(ctx context.Context) (string, error) {
	d.stopServer() // the server may have stopped answering
	handler, err := d.surface.newHandler(nil)
	if err != nil {
		return "", err
	}
	listener, err := listenNearPort(ctx, d.surface.cfg.Listen)
	if err != nil {
		return "", err
	}
	log := d.surface.app.Logger(d.surface.cfg)
	withdraw, err := announceServer(d.surface.cfg, listener.Addr())
	if err != nil {
		_ = listener.Close()
		return "", err
	}
	// The server outlives the call that starts it.
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	d.end, d.ended = end, ended
	go func() {
		defer close(ended)
		defer withdraw()
		if err := httpapi.Serve(lifetime, listener, handler); err != nil {
			log.Error("the dashboard stopped", "error", err)
		}
	}()
	return reachableAddress(listener.Addr()), nil
}

// stopServer stops the server that this process has started.
func (d *dashboard) stopServer() {
	if d.end == nil {
		return
	}
	d.end()
	<-d.ended
	d.end = nil
}

func (d *dashboard) closeServer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopServer()
}

// announceServer makes the server visible to other processes.
func announceServer(cfg *config.Config, addr net.Addr) (withdraw func(), err error) {
	return live.Announce(serversDir(cfg), live.Server{PID: os.Getpid(), Address: reachableAddress(addr), Since: time.Now().UTC()})
}

// reachableAddress returns an address at which this machine reaches a listener.
func reachableAddress(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// listenNearPort listens on an address. If its port is in use, it tries the next ports, and
// then any free port.
func listenNearPort(ctx context.Context, address string) (net.Listener, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the address %q to listen on is not valid: %w", address, err).WithFix("write a host and a port, such as 127.0.0.1:3000")
	}
	first, err := strconv.Atoi(text)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the address %q to listen on is not valid: the port %q is not a number", address, text).WithFix("write a host and a port, such as 127.0.0.1:3000")
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

// CheckHealth reports whether a Guideway server answers at a URL.
func CheckHealth(ctx context.Context, url string) (bool, error) {
	status, text, err := FetchPage(ctx, url)
	if err != nil {
		return false, err
	}
	var body struct {
		Status string `json:"status"`
	}
	return status == http.StatusOK && json.Unmarshal(text, &body) == nil && body.Status == "ok", nil
}

// FetchPage requests a small page of a local server, without a proxy and without following
// redirects.
func FetchPage(ctx context.Context, url string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, // no Proxy: the server is local
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
