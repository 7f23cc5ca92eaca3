package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// viewIndex has the views of a History, and finds those that a change concerns: a change costs
// what it touches, and no look of every view at every subject.
type viewIndex struct {
	all       map[*View]struct{}
	bySubject map[subject]map[*View]struct{}
}

func newViewIndex() *viewIndex {
	return &viewIndex{all: map[*View]struct{}{}, bySubject: map[subject]map[*View]struct{}{}}
}

func (x *viewIndex) add(v *View) {
	x.all[v] = struct{}{}
	for s := range v.subjects {
		if x.bySubject[s] == nil {
			x.bySubject[s] = map[*View]struct{}{}
		}
		x.bySubject[s][v] = struct{}{}
	}
}

func (x *viewIndex) remove(v *View) {
	delete(x.all, v)
	for s := range v.subjects {
		if delete(x.bySubject[s], v); len(x.bySubject[s]) == 0 {
			delete(x.bySubject, s)
		}
	}
}

func (x *viewIndex) clear() {
	clear(x.all)
	clear(x.bySubject)
}

// concernedBy returns what each view has to apply of the changes of one revision, after which
// the policy is p.
func (x *viewIndex) concernedBy(changes []change, p *policy) map[*View][]change {
	concerned := map[*View][]change{}
	if len(x.all) == 0 {
		return concerned
	}
	for i := range changes {
		c := &changes[i]
		if !c.binding {
			for v := range x.holdersOf(p.roles[c.key]) {
				concerned[v] = append(concerned[v], *c)
			}
			continue
		}
		before, after := x.subjectsOf(c.before, c.key), x.subjectsOf(c.after, c.key)
		for v, subjects := range after {
			concerned[v] = append(concerned[v], c.with(subjects))
		}
		for v := range before {
			if after[v] == nil {
				concerned[v] = append(concerned[v], c.with(nil))
			}
		}
	}
	return concerned
}

// holdersOf returns the views whose users have a role. Those that have lost it by a change of the
// same revision are concerned by that one.
func (x *viewIndex) holdersOf(r *role) map[*View]struct{} {
	holders := map[*View]struct{}{}
	if r == nil {
		return holders
	}
	for _, scope := range r.scopes {
		by := scope.roles[scope.position(r)].by[0]
		s, _ := subjectOf(&by.binding.subjects[by.subject], by.binding.key.namespace)
		for v := range x.bySubject[s] {
			holders[v] = struct{}{}
		}
	}
	return holders
}

// subjectsOf returns the subjects of a binding that are those of a view.
func (x *viewIndex) subjectsOf(d *definition, key objectKey) map[*View][]rbacv1.Subject {
	subjects := map[*View][]rbacv1.Subject{}
	if d == nil {
		return subjects
	}
	for i := range d.subjects {
		s, _ := subjectOf(&d.subjects[i], key.namespace)
		for v := range x.bySubject[s] {
			subjects[v] = append(subjects[v], d.subjects[i])
		}
	}
	return subjects
}
