// Package webhookauthorizer asks a server that an operator runs whether requests are
// allowed, by SubjectAccessReviews
// (https://kubernetes.io/docs/reference/access-authn-authz/webhook/). The requests and their
// repetition are those of k8s.io/apiserver.
package webhookauthorizer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/cel"
	utilwebhook "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// Options say which server is asked.
type Options struct {
	// ConfigFile is a kubeconfig: its cluster is the server that is asked, its user is
	// this server. Required, unless Config is set.
	ConfigFile string
	// Config is how the server is reached, in place of ConfigFile. Its host has the path
	// that SubjectAccessReviews are sent to.
	Config *rest.Config
	// Version of the SubjectAccessReviews: v1 or v1beta1. Required.
	Version string
	// AllowedTTL and DeniedTTL are for how long answers are cached; 0: they are not.
	AllowedTTL, DeniedTTL time.Duration

	// Name is for errors and metrics; "" if there is one webhook only.
	Name string
	// Timeout of a question; 0: that of the kubeconfig's client, 30 s.
	Timeout time.Duration
	// DenyOnError says that requests are refused while the server does not answer;
	// otherwise the decision is left to the other authorizers.
	DenyOnError bool
	// ReviewInterval is how often open watches are decided again; 0: as often as
	// permissions are asked for anew, but at most once a minute.
	ReviewInterval time.Duration
	// Conditions are expressions in CEL about the SubjectAccessReview. The server is asked
	// only if all of them are true.
	Conditions []apiserver.WebhookMatchCondition
	// Metrics count the questions; nil: they are not counted.
	Metrics metrics.AuthorizerMetrics
}

// Authorizer implements auth.Authorizer. It is safe for concurrent use.
type Authorizer struct {
	name      string // for errors
	webhook   *webhook.WebhookAuthorizer
	questions questions
	interval  time.Duration
	changes   auth.Changes
}

// minReview bounds how often open watches are decided again.
const minReview = time.Minute

// New returns an Authorizer. It reads the file, and asks nothing yet.
func New(o Options) (*Authorizer, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	if o.Timeout > 0 {
		config.Timeout = o.Timeout
	}
	onError := authorizer.DecisionNoOpinion
	if o.DenyOnError {
		onError = authorizer.DecisionDeny
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NoopAuthorizerMetrics{}
	}
	w, err := webhook.New(config, o.Version, 0, 0, *webhook.DefaultRetryBackoff(), onError,
		o.Conditions, o.Name, o.Metrics, cel.NewDefaultCompiler())
	if err != nil {
		return nil, err
	}
	name := "the authorization webhook"
	if o.Name != "" {
		name += " " + o.Name
	}
	interval := o.ReviewInterval
	if interval <= 0 {
		interval = max(o.AllowedTTL, minReview)
	}
	a := &Authorizer{name: name, webhook: w, interval: interval}
	a.questions = questions{
		ask: a.ask, share: o.AllowedTTL, now: time.Now, asked: map[digest]*question{},
		answers: answers{allowedTTL: o.AllowedTTL, deniedTTL: o.DeniedTTL, maxBytes: maxAnswerBytes, now: time.Now},
	}
	return a, nil
}

// config returns how the server is reached.
func (o *Options) config() (*rest.Config, error) {
	if o.Config != nil {
		return rest.CopyConfig(o.Config), nil
	}
	return utilwebhook.LoadKubeconfig(o.ConfigFile, nil)
}

// Authorize implements auth.Authorizer. It blocks while the other server is asked, which is
// once for all requests that ask the same at the same time. A handler does not compute meanwhile.
func (w *Authorizer) Authorize(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	return w.questions.Authorize(ctx, a)
}

// ask asks the other server.
func (w *Authorizer) ask(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	record := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: a.User.Name, UID: a.User.UID, Groups: a.User.Groups, Extra: a.User.Extra},
		Verb: a.Verb, Path: a.Path, ResourceRequest: a.OnResource(),
		APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
	}
	if a.FieldSelector != "" {
		selector, err := fields.ParseSelector(a.FieldSelector)
		record.FieldSelectorParsingErr = err
		if err == nil {
			record.FieldSelectorRequirements = selector.Requirements()
		}
	}
	if a.LabelSelector != "" {
		selector, err := labels.Parse(a.LabelSelector)
		record.LabelSelectorParsingErr = err
		if err == nil {
			record.LabelSelectorRequirements, _ = selector.Requirements()
		}
	}
	decision, reason, err := w.webhook.Authorize(ctx, uncached{record})
	if err != nil {
		err = fmt.Errorf("%s: %w", w.name, err)
	}
	switch decision {
	case authorizer.DecisionAllow:
		return auth.Allow, reason, err
	case authorizer.DecisionDeny:
		return auth.Deny, reason, err
	}
	return auth.NoOpinion, reason, err
}

// Rules implements auth.RuleLister: the other server cannot be asked for all.
func (w *Authorizer) Rules(context.Context, auth.User, string) auth.Rules {
	return auth.Rules{Incomplete: true, Problem: "webhook authorizer does not support user rule resolution"}
}

// OnChange implements auth.ChangeNotifier. The other server does not report changes, so
// changed is called at intervals while Run runs, and by Forget.
func (w *Authorizer) OnChange(changed func(user string)) (stop func()) {
	return w.changes.OnChange(changed)
}

// Forget has open watches decided again, by answers of the other server that are no older than
// the call: what it decides by has changed.
func (w *Authorizer) Forget() {
	w.questions.forget()
	w.changes.Notify()
}

// Run has open watches decided again, until ctx ends.
func (w *Authorizer) Run(ctx context.Context) {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.changes.Notify()
		case <-ctx.Done():
			return
		}
	}
}
