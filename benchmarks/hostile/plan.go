package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/hostile/attacks"
	"github.com/levelwire/levelwire/benchmarks/hostile/quiet"
	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// plan is what is to be measured.
type plan struct {
	duration  time.Duration
	quiet     time.Duration // 0: a sixth of duration
	after     time.Duration // 0: a sixth of duration
	sides     []string
	scale     float64
	objects   int
	only      []string
	promised  float64 // how much the p99 under attack may be of the quiet one
	levelwire string
	profiling bool
}

const (
	hostileUser = "hostile" // and its group
	quietGroup  = "quiet"
	// crowdPath is a large list, and quietNamespace where the quiet clients write.
	crowdNamespace = "crowd"
	crowdPath      = "/api/v1/namespaces/" + crowdNamespace + "/configmaps"
	quietNamespace = "quiet"
)

// token is the secret of a user, whose name may hold commas and spaces.
func token(user string) string {
	return "token-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(user))
}

// validate returns what is wrong with the flags and arguments of the command. It makes
// the path of our program absolute.
func (p *plan) validate(arguments []string) (err error) {
	if err := tested.CheckSides(p.sides); err != nil {
		return err
	}
	for _, name := range p.only {
		if !slices.Contains(attacks.Names(), name) {
			return process.WrongFlag("attacks", "there is no attack %q; names are separated by semicolons, and hostile -h lists them", name)
		}
	}
	if p.levelwire, err = tested.Program(p.levelwire); err != nil && slices.Contains(p.sides, tested.Ours) {
		return err
	}
	switch {
	case p.duration <= 0:
		return process.WrongFlag("duration", "%v must be longer than nothing", p.duration)
	case p.quiet < 0:
		return process.WrongFlag("quiet", "%v must not be negative", p.quiet)
	case p.after < 0:
		return process.WrongFlag("after", "%v must not be negative", p.after)
	case !(p.scale > 0): // or it is not a number
		return process.WrongFlag("rate", "%v must be above 0", p.scale)
	case p.objects < 0:
		return process.WrongFlag("objects", "%d must not be negative", p.objects)
	}
	return process.NoArguments(arguments)
}

func (p *plan) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills what is left
	var found []*result
	for _, side := range p.sides {
		r, err := p.side(ctx, dir, side)
		if r != nil {
			found = append(found, r)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", side, err)
			if len(found) > 0 {
				err = errors.Join(p.print(ctx, found), err)
			}
			return err
		}
	}
	return p.print(ctx, found)
}

// side measures a server.
func (p *plan) side(ctx context.Context, scratch, side string) (found *result, err error) {
	end := time.Now().Add(p.duration)
	dir := filepath.Join(scratch, side)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	tokens := ""
	for _, name := range append(quiet.Names(), hostileUser) {
		group := quietGroup
		if name == hostileUser {
			group = hostileUser
		}
		tokens += fmt.Sprintf("%[1]s,%[1]s-user,%[1]s,%[2]s\n", token(name), group)
	}
	file := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		return nil, err
	}
	t := &tested.Server{Side: side, Flags: p.serverFlags(file)}
	launcher := tested.Launcher{Dir: dir, Levelwire: p.levelwire, Profiling: p.profiling}
	if err := launcher.Launch(ctx, t, filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()
	if err := p.seed(ctx, t); err != nil {
		return nil, err
	}
	progress(side, "%d objects are there, %s", p.objects, t.Access.URL)
	found = &result{side: side}
	access := quiet.Access{URL: t.Access.URL, CA: t.Access.CA, Tokens: map[string]string{}, Lists: crowdPath, Namespace: quietNamespace}
	for _, name := range quiet.Names() {
		access.Tokens[name] = token(name)
	}
	found.lost, err = quiet.Run(ctx, access, func(c *quiet.Clients) error { return p.phases(ctx, t, dir, c, found, end) })
	return found, err
}

// serverFlags are those of our server. Where connections are held and there is no other attack,
// which would find none, there may be so few connections that one user's share is less than
// are held.
func (p *plan) serverFlags(tokens string) []string {
	flags := []string{"--token-auth-file", tokens}
	if slices.Equal(p.only, []string{attacks.Held}) {
		flags = append(flags, "--max-connections", "256")
	}
	return flags
}

// seed makes what is there before the first phase.
func (p *plan) seed(ctx context.Context, t *tested.Server) error {
	var requests []load.Request
	post := func(path, body string) {
		requests = append(requests, load.Request{Method: http.MethodPost, Path: path, Body: []byte(body), Header: []hpack.HeaderField{{Name: "content-type", Value: "application/json"}}})
	}
	for _, name := range []string{crowdNamespace, quietNamespace} {
		post("/api/v1/namespaces", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
	}
	if t.Side == tested.Ours { // the peer of the upstream libraries asks for no rights
		const rbac = "/apis/rbac.authorization.k8s.io/v1/"
		post(rbac+"clusterroles", hostileRole)
		post(rbac+"clusterrolebindings", binding(hostileUser, hostileUser))
		post(rbac+"clusterrolebindings", binding(quietGroup, "cluster-admin"))
	}
	if err := t.Change(ctx, requests); err != nil {
		return err
	}
	requests = nil
	for n := range p.objects {
		post(crowdPath, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"crowd-%d","labels":{"app":"crowd"}},"data":{"padding":%q}}`, n, strings.Repeat("x", 1000)))
	}
	return t.Change(ctx, requests)
}

// hostileRole is the rights of the attacker: those that the attacks need, and not more.
const hostileRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"hostile"},"rules":[
	{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch","create","update","patch","delete"]},
	{"apiGroups":["apiextensions.k8s.io"],"resources":["customresourcedefinitions"],"verbs":["get","create","delete"]},
	{"apiGroups":["hanging.example.com"],"resources":["converteds"],"verbs":["get","list","create"]},
	{"apiGroups":[""],"resources":["users","groups"],"verbs":["impersonate"]}]}`

// binding gives a group a ClusterRole.
func binding(group, role string) string {
	return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":%[1]q},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[2]q},`+
		`"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":%[1]q}]}`, group, role)
}

// phases measures the three phases until end.
func (p *plan) phases(ctx context.Context, t *tested.Server, dir string, c *quiet.Clients, found *result, end time.Time) error {
	const warmUp = 2 * time.Second
	if err := tested.Pause(ctx, warmUp); err != nil {
		return err
	}
	c.Take()
	sixth := max(time.Until(end)/6, time.Second)
	before := sixth
	if p.quiet > 0 {
		before = p.quiet
		end = end.Add(before - sixth)
	}
	if err := found.phase(ctx, "quiet", before, t, c, nil); err != nil {
		return err
	}
	attacker, err := process.Start(ctx, dir, "attack", attackTask{Target: attacks.Target{
		URL: t.Access.URL, CA: t.Access.CA, Token: token(hostileUser), CustomResources: t.Side == tested.Ours, Scale: p.scale, Only: p.only, Lists: crowdPath,
	}})
	if err != nil {
		return err
	}
	made := make(chan error, 1)
	go func() {
		for {
			var counts []attacks.Count
			if err := attacker.Receive(&counts); err != nil {
				made <- err
				return
			}
			if counts == nil {
				made <- nil
				return
			}
			found.mu.Lock()
			found.counts = counts
			found.mu.Unlock()
		}
	}()
	err = found.phase(ctx, "hostile", 4*sixth, t, c, attacker)
	if err == nil {
		err = attacker.Send("stop")
	}
	if err == nil {
		err = <-made
	}
	if err == nil {
		err = attacker.Stop()
	}
	if err != nil {
		attacker.Kill()
		return err
	}
	after := max(time.Until(end), sixth)
	if p.after > 0 {
		after = p.after
	}
	return found.phase(ctx, "after", after, t, c, nil)
}

// attackTask is what the process of the attackers is to do.
type attackTask struct{ Target attacks.Target }

// attack is the process of the attackers. It sends counts until it is sent anything, and
// then an empty value. The system prefers all other processes: what the server
// does is to be measured, and not that attackers take its processor away.
func attack(ctx context.Context, parent *process.Parent) error {
	if err := giveWay(); err != nil {
		return err
	}
	var task attackTask
	if err := parent.Receive(&task); err != nil {
		return err
	}
	attacking, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		var end json.RawMessage
		_ = parent.Receive(&end) // also the parent's end is one
		stop()
	}()
	var failed error
	err := attacks.Run(attacking, task.Target, time.Second, func(counts []attacks.Count) {
		if err := parent.Send(counts); err != nil {
			failed = err
			stop()
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return errors.Join(parent.Send(nil), parent.Wait())
}

// progress prints to the user how far the measurement is.
func progress(side, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s: "+format+"\n", append([]any{time.Now().Format(time.TimeOnly), side}, args...)...)
}
