package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// question is a request as rules are asked about it.
type question struct {
	key     resourceKey
	asked   string // the subresource as the request names it
	name    string
	path    string
	verb    string
	verbBit uint32
	object  bool // about a resource and not about a path
}

func questionOf(a *auth.Attributes) question {
	return question{
		key: keyOf(a.Group, a.Resource, a.Subresource), asked: a.Subresource, name: a.Name,
		path: a.Path, verb: a.Verb, verbBit: verbBit(a.Verb), object: a.OnResource(),
	}
}

// ruleSet are the rules of one or more roles, compiled: how long a question takes
// does not depend on how many rules there are. It is immutable once all rules were
// added.
type ruleSet struct {
	resources map[resourceKey]*permissions
	urls      map[string]*permissions
	prefixes  []urlPrefix // of URLs with a "*" at the end
	prefixAt  map[string]int
	// anyGroup, anyResource and anyParent: some key has "*" as group, as resource
	// without a subresource, and with one. Otherwise there is no need to look.
	anyGroup, anyResource, anyParent bool

	combinations float64    // of the rules that were compiled
	wide         []wideRule // those that were not
}

type urlPrefix struct {
	prefix      string
	permissions *permissions
}

// permissions are the verbs that are allowed on a resource or path.
type permissions struct {
	all   []permission            // on every object
	named map[string][]permission // by the object's name
}

// permission allows verbs. source is the number of the role that does, in the order
// of addition.
type permission struct {
	verbs  verbSet
	source int32
}

// notFound is the source of a permission that there is not.
const notFound int32 = -1

// compile returns the ruleSet of one role, as source 0.
func compile(rules []rbacv1.PolicyRule) *ruleSet {
	s := new(ruleSet)
	s.add(rules, 0)
	return s
}

// add adds the rules of a role.
func (s *ruleSet) add(rules []rbacv1.PolicyRule, source int32) {
	for i := range rules {
		rule := &rules[i]
		p := permission{verbs: verbsOf(rule.Verbs), source: source}
		for _, url := range rule.NonResourceURLs {
			s.addURL(url, p)
		}
		n := combinations(rule)
		if tooWide(rule, n, s.combinations) {
			s.wide = append(s.wide, newWideRule(rule, p))
			continue
		}
		s.combinations += n
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resource, subresource := splitResource(name)
				s.addResource(resourceKey{group, resource, subresource}, rule.ResourceNames, p)
			}
		}
	}
}

func (s *ruleSet) addResource(key resourceKey, names []string, p permission) {
	s.anyGroup = s.anyGroup || key.group == rbacv1.APIGroupAll
	if key.resource == rbacv1.ResourceAll {
		s.anyResource = s.anyResource || key.subresource == ""
		s.anyParent = s.anyParent || key.subresource != ""
	}
	if s.resources == nil {
		s.resources = map[resourceKey]*permissions{}
	}
	at := s.resources[key]
	if at == nil {
		at = new(permissions)
		s.resources[key] = at
	}
	if len(names) == 0 {
		at.all = merge(at.all, p)
		return
	}
	if at.named == nil {
		at.named = map[string][]permission{}
	}
	for _, name := range names {
		at.named[name] = merge(at.named[name], p)
	}
}

func (s *ruleSet) addURL(url string, p permission) {
	prefix, pattern := strings.CutSuffix(url, "*")
	if pattern {
		s.addPrefix(strings.TrimRight(prefix, "*"), p)
		return
	}
	if s.urls == nil {
		s.urls = map[string]*permissions{}
	}
	if s.urls[url] == nil {
		s.urls[url] = new(permissions)
	}
	s.urls[url].all = merge(s.urls[url].all, p)
}

func (s *ruleSet) addPrefix(prefix string, p permission) {
	if i, known := s.prefixAt[prefix]; known {
		at := s.prefixes[i].permissions
		at.all = merge(at.all, p)
		return
	}
	if s.prefixAt == nil {
		s.prefixAt = map[string]int{}
	}
	s.prefixAt[prefix] = len(s.prefixes)
	s.prefixes = append(s.prefixes, urlPrefix{prefix, &permissions{all: []permission{p}}})
}

// recentPermissions is how many of a key's permissions a new one is compared with: one that allows
// nothing more is only not needed.
const recentPermissions = 8

// merge adds a permission to those of a key, unless it allows nothing more. Other verbs than the usual
// ones belong to all keys of a rule, and are not copied.
func merge(list []permission, p permission) []permission {
	var known uint32
	for _, recent := range list[max(0, len(list)-recentPermissions):] {
		known |= recent.verbs.bits
	}
	if known&anyVerb != 0 || p.verbs.bits&^known == 0 && len(p.verbs.others) == 0 {
		return list
	}
	if last := len(list) - 1; last >= 0 && list[last].source == p.source {
		verbs := &list[last].verbs
		if len(verbs.others) == 0 || len(p.verbs.others) == 0 {
			verbs.bits |= p.verbs.bits
			if len(verbs.others) == 0 {
				verbs.others = p.verbs.others
			}
			return list
		}
	}
	return append(list, p)
}

// allows returns the source of a rule that allows what is asked, or notFound.
func (s *ruleSet) allows(q *question) int32 {
	if !q.object {
		return s.allowsPath(q)
	}
	if len(s.resources) == 0 {
		return s.allowsWide(q)
	}
	if source := s.allowsIn(q.key.group, q); source != notFound {
		return source
	}
	if s.anyGroup {
		if source := s.allowsIn(rbacv1.APIGroupAll, q); source != notFound {
			return source
		}
	}
	return s.allowsWide(q)
}

func (s *ruleSet) allowsIn(group string, q *question) int32 {
	if source := s.allowsAt(resourceKey{group, q.key.resource, q.key.subresource}, q); source != notFound {
		return source
	}
	if s.anyResource {
		if source := s.allowsAt(resourceKey{group, rbacv1.ResourceAll, ""}, q); source != notFound {
			return source
		}
	}
	if s.anyParent && q.asked != "" {
		return s.allowsAt(resourceKey{group, rbacv1.ResourceAll, q.asked}, q)
	}
	return notFound
}

func (s *ruleSet) allowsAt(key resourceKey, q *question) int32 {
	at := s.resources[key]
	if at == nil {
		return notFound
	}
	if source := sourceOf(at.all, q); source != notFound || at.named == nil {
		return source
	}
	return sourceOf(at.named[q.name], q)
}

func (s *ruleSet) allowsPath(q *question) int32 {
	if at := s.urls[q.path]; at != nil {
		if source := sourceOf(at.all, q); source != notFound {
			return source
		}
	}
	for _, p := range s.prefixes {
		if strings.HasPrefix(q.path, p.prefix) {
			if source := sourceOf(p.permissions.all, q); source != notFound {
				return source
			}
		}
	}
	return notFound
}

func sourceOf(list []permission, q *question) int32 {
	for i := range list {
		if list[i].verbs.has(q.verb, q.verbBit) {
			return list[i].source
		}
	}
	return notFound
}

// Rules are rules that hold for all users, compiled. They are immutable.
type Rules struct{ set *ruleSet }

// Compile returns the rules in a form that decides quickly.
func Compile(rules []rbacv1.PolicyRule) *Rules { return &Rules{compile(rules)} }

// Allow reports whether one of the rules allows what is asked, whatever the user.
func (r *Rules) Allow(a *auth.Attributes) bool {
	q := questionOf(a)
	return r.set.allows(&q) != notFound
}
