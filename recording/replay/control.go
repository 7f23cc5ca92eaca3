package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Commands says what Do understands.
const Commands = `play [SPEED|max]  go on, at this many times the recorded speed
pause             stop
step [N]          make the next N changes (1) and stop
goto VERSION      make all changes up to a version at once
status            say where the replay is`

// Do carries out one of the Commands.
func (p *Player) Do(command string) error {
	name, argument, _ := strings.Cut(strings.TrimSpace(command), " ")
	argument = strings.TrimSpace(argument)
	switch name {
	case "play":
		if argument == "" {
			p.Resume()
			return nil
		}
		speed, err := ParseSpeed(argument)
		if err != nil {
			return err
		}
		return p.Play(speed)
	case "pause":
		p.Pause()
	case "step":
		n, err := strconv.Atoi(argument)
		if argument == "" {
			n, err = 1, nil
		}
		if err != nil || n < 1 {
			return fmt.Errorf("step %s: give a number of changes, 1 or more", argument)
		}
		p.Step(n)
	case "goto":
		revision, err := strconv.ParseInt(argument, 10, 64)
		if err != nil {
			return fmt.Errorf("goto %s: give a version, which is a number", argument)
		}
		return p.GoTo(revision)
	case "status":
	default:
		return fmt.Errorf("%q is none of the commands:\n%s", name, Commands)
	}
	return nil
}

// ParseSpeed reads a speed: a number above zero, or max.
func ParseSpeed(text string) (float64, error) {
	if text == "max" {
		return MaxSpeed, nil
	}
	speed, err := strconv.ParseFloat(strings.TrimSuffix(text, "x"), 64)
	if err != nil || !(speed > 0) || speed > 1e9 {
		return 0, fmt.Errorf("the speed %q is neither a number above zero nor max", text)
	}
	return speed, nil
}

// String is one line for a terminal.
func (s Status) String() string {
	state := "playing at " + strconv.FormatFloat(s.Speed, 'g', 4, 64) + "x"
	switch {
	case s.Error != "":
		state = "ended: " + s.Error
	case s.Ended:
		state = "ended"
	case s.Paused:
		state = "paused"
	case s.Speed == 0:
		state = "playing without waiting"
	}
	return fmt.Sprintf("version %d of %d to %d, %s of %s, %s", s.Revision, s.First, s.Last,
		s.Time.Sub(s.FirstTime).Round(time.Millisecond), s.LastTime.Sub(s.FirstTime).Round(time.Millisecond), state)
}

// ReadCommands carries out the lines of a terminal, until it ends, and prints where the
// replay is after each.
func (p *Player) ReadCommands(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var message string
		if err := p.Do(lines.Text()); err != nil {
			message = err.Error()
		} else {
			message = p.Status().String()
		}
		if _, err := fmt.Fprintln(out, message); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Handler controls a player over HTTP: GET / is its Status as JSON, POST /play?speed=10,
// /pause, /step?n=5 and /goto?version=4711 do what the commands do, and answer with it.
// It has no authentication: it is for a loopback address. Requests of web pages of other
// origins, and for other host names, are refused.
func (p *Player) Handler() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.Status())
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { answer(w) })
	for name, parameter := range map[string]string{"play": "speed", "pause": "", "step": "n", "goto": "version"} {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			if err := p.Do(name + " " + r.URL.Query().Get(parameter)); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			answer(w)
		})
	}
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page whose name resolves to this address would be of the same origin.
		host := r.Host
		if h, _, err := net.SplitHostPort(r.Host); err == nil {
			host = h
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "ask by an IP address, or localhost", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// ServeControl serves Handler until ctx ends.
func (p *Player) ServeControl(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: p.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
