-- Sites, pages, jobs and tasks under the names that SQL users know them by: views over the queue, through which it can
-- be read and added to. Nothing is kept twice. A page of a job and its task are one entry, and have one number.

CREATE TABLE loose_pages (
    id       integer PRIMARY KEY,
    host     integer NOT NULL,
    path     text NOT NULL,
    target   text NOT NULL,
    priority integer NOT NULL,
    UNIQUE (host, path)
);
COMMENT ON TABLE loose_pages IS 'Pages that were inserted by SQL and have no task yet. The first task makes an entry of one, with its number';
COMMENT ON COLUMN loose_pages.id IS 'Its number, from entry_numbers';
COMMENT ON COLUMN loose_pages.host IS 'The number of its host';
COMMENT ON COLUMN loose_pages.path IS 'By what it is known';
COMMENT ON COLUMN loose_pages.target IS 'What is requested';
COMMENT ON COLUMN loose_pages.priority IS 'In thousandths';
COMMENT ON INDEX loose_pages_pkey IS 'A page by its number';
COMMENT ON INDEX loose_pages_host_path_key IS 'A page by its host and path';

-- Jobs ----------------------------------------------------------------------------------------------------------------

CREATE FUNCTION job_queues() RETURNS TABLE (queue integer, domain_id integer, number integer, job_id text)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT q.id, q.host, c.number, c.body -> 'spec' ->> 'id'
    FROM catalog_rows c JOIN queues q ON q.collection = c.number
    WHERE c.kind = 0 AND c.body #>> '{spec,job}' IS NOT NULL;
END;
COMMENT ON FUNCTION job_queues() IS 'The queues of jobs. A function, so that who locks a task locks its entry and nothing else';

-- In PL/pgSQL, which plans them once for each session.
CREATE FUNCTION job_profile(job text) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT p.body FROM catalog_rows p WHERE p.kind = 1 AND p.body ->> 'collection' = job ORDER BY p.number LIMIT 1);
END $$;
COMMENT ON FUNCTION job_profile(text) IS 'How a job harvests';

CREATE FUNCTION job_seed(job text, OUT number integer, OUT url text) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    SELECT s.number, s.body -> 'seed' ->> 'url' INTO number, url FROM catalog_rows s
    WHERE s.kind = 2 AND (s.body -> 'seed' -> 'profiles')::jsonb ? job ORDER BY s.number LIMIT 1;
END $$;
COMMENT ON FUNCTION job_seed(text) IS 'Where a job starts';

CREATE FUNCTION job_mode(job text) RETURNS text LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN coalesce(job_profile(job) ->> 'order', 'hierarchy');
END $$;
COMMENT ON FUNCTION job_mode(text) IS 'How a job orders its pages';

CREATE FUNCTION job_domain(collection integer, job text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    hosts_of_job integer[];
BEGIN
    SELECT array_agg(q.host ORDER BY q.id) INTO hosts_of_job FROM queues q WHERE q.collection = job_domain.collection;
    IF array_length(hosts_of_job, 1) > 1 THEN
        RETURN coalesce((SELECT h.id FROM hosts h WHERE h.owner = -1
            AND h.key = (web_address((job_seed(job)).url)).host), hosts_of_job[1]);
    END IF;
    RETURN hosts_of_job[1];
END $$;
COMMENT ON FUNCTION job_domain(integer, text) IS 'The host that a job starts at';

-- What is finer than milliseconds in a time is left out: the database has no word for it.
CREATE FUNCTION job_is_over(collection integer, job json) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    finer constant text := '[0-9]+ ?(µs|us|ns)';
    left_over record;
BEGIN
    SELECT coalesce(sum(n.queued), 0) AS queued, coalesce(sum(n.leased), 0) AS leased, coalesce(sum(n.fetches), 0) AS fetches,
        coalesce(sum(n.bytes), 0) AS bytes INTO left_over FROM counters n WHERE n.collection = job_is_over.collection;
    RETURN left_over.leased = 0 AND (left_over.queued = 0
        OR coalesce(left_over.fetches >= (job #>> '{limits,pages}')::numeric, false)
        OR coalesce(left_over.bytes >= (job #>> '{limits,bytes}')::numeric, false)
        OR coalesce((job ->> 'started')::timestamptz + coalesce(nullif(trim(regexp_replace(job ->> 'idle', finer, '', 'g')), '')::interval, '0')
            + nullif(trim(regexp_replace(job #>> '{limits,time}', finer, '', 'g')), '')::interval <= now(), false));
END $$;
COMMENT ON FUNCTION job_is_over(integer, json) IS 'Whether a job has nothing under way, and nothing left to fetch or a limit reached';

CREATE VIEW domains AS SELECT h.id, h.key AS name FROM hosts h WHERE h.owner = -1;
COMMENT ON VIEW domains IS 'The hosts that are crawled. Insert a name to add one, or to learn the number of one that is there';
COMMENT ON COLUMN domains.id IS 'Its number';
COMMENT ON COLUMN domains.name IS 'The name, in small letters and without a port';

CREATE VIEW jobs AS
SELECT c.body -> 'spec' ->> 'id' AS id,
    job_domain(c.number, c.body -> 'spec' ->> 'id') AS domain_id,
    CASE
        WHEN c.body #>> '{spec,job,steering}' = 'cancelled' THEN 'cancelled'
        WHEN job_is_over(c.number, c.body #> '{spec,job}') THEN 'completed'
        ELSE c.body #>> '{spec,job,steering}'
    END AS status,
    job_mode(c.body -> 'spec' ->> 'id') AS prioritization_mode,
    coalesce((SELECT sum(n.queued + n.leased + n.done + n.failed) FROM counters n WHERE n.collection = c.number), 0)::integer AS total_pages,
    coalesce((SELECT sum(n.done) FROM counters n WHERE n.collection = c.number), 0)::integer AS completed_tasks,
    coalesce((SELECT sum(n.failed) FROM counters n WHERE n.collection = c.number), 0)::integer AS failed_tasks,
    (c.body #>> '{spec,job,started}')::timestamptz AS created_at,
    CASE WHEN job_is_over(c.number, c.body #> '{spec,job}') THEN (c.body #>> '{spec,job,finished}')::timestamptz END AS completed_at
FROM catalog_rows c
WHERE c.kind = 0 AND c.body #>> '{spec,job}' IS NOT NULL;
COMMENT ON VIEW jobs IS 'Crawls that end. They are made by `forager job create`; setting status pauses, resumes or cancels one';
COMMENT ON COLUMN jobs.id IS 'The name that it was given';
COMMENT ON COLUMN jobs.domain_id IS 'The domain that it starts at';
COMMENT ON COLUMN jobs.status IS 'running, paused, cancelled, or completed if nothing is left to fetch or a limit is reached';
COMMENT ON COLUMN jobs.prioritization_mode IS 'hierarchy, fifo or linked; also the other orders of a profile';
COMMENT ON COLUMN jobs.total_pages IS 'How many pages are known, fetched or not';
COMMENT ON COLUMN jobs.completed_tasks IS 'How many pages were fetched';
COMMENT ON COLUMN jobs.failed_tasks IS 'How many pages were given up';
COMMENT ON COLUMN jobs.created_at IS 'When it was started';
COMMENT ON COLUMN jobs.completed_at IS 'When it had nothing left to fetch, or reached a limit';

-- Pages and tasks -------------------------------------------------------------------------------------------------------

-- Numbers first, so that a page is found by its number through an index, whichever kind it is of.
CREATE FUNCTION all_pages() RETURNS TABLE (id integer, domain_id integer, path text, priority integer, job_id text, number integer)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT i.id, coalesce(q.host, l.host), coalesce(l.path, substring(coalesce(e.identity, e.url) FROM '^[^:]+://[^/]*(.*)$')),
        coalesce(e.priority, l.priority), c.body -> 'spec' ->> 'id', c.number
    FROM (SELECT n.id FROM entries n UNION ALL SELECT n.id FROM loose_pages n) i
    LEFT JOIN entries e ON e.id = i.id
    LEFT JOIN (queues q JOIN catalog_rows c ON c.kind = 0 AND c.number = q.collection AND c.body #>> '{spec,job}' IS NOT NULL)
        ON q.id = e.queue
    LEFT JOIN loose_pages l ON l.id = i.id
    WHERE c.number IS NOT NULL OR l.id IS NOT NULL;
END;
COMMENT ON FUNCTION all_pages() IS 'The pages of jobs, and those without a task';

CREATE VIEW pages AS
SELECT p.id,
    p.domain_id,
    p.path,
    (p.priority * 0.001)::numeric(4,3) AS priority_score,
    p.job_id,
    CASE WHEN p.number IS NOT NULL THEN div(p.priority * coalesce((SELECT sum(n.queued + n.leased + n.done + n.failed) FROM counters n
        WHERE n.collection = p.number), 0) + 500, 1000)::bigint END AS rank
FROM all_pages() p;
COMMENT ON VIEW pages IS 'The pages of jobs: each job has its own, and ranks them by itself. Insert domain and path to add one, then a task to have it crawled';
COMMENT ON COLUMN pages.id IS 'Its number, which is also that of its task';
COMMENT ON COLUMN pages.domain_id IS 'The domain that it is on';
COMMENT ON COLUMN pages.path IS 'The path, and the query if there is one';
COMMENT ON COLUMN pages.priority_score IS 'From 0 to 1; higher is sooner. Can be set, and is only ever raised. 0 in mode fifo, where only the order of arrival counts';
COMMENT ON COLUMN pages.job_id IS 'The job; none if it has no task yet';
COMMENT ON COLUMN pages.rank IS 'The score for people: among 1700 pages the homepage has rank 1700';

CREATE VIEW tasks AS
SELECT e.id,
    j.job_id,
    e.id AS page_id,
    substring(coalesce(e.identity, e.url) FROM '^[^:]+://[^/]*(.*)$') AS path,
    CASE e.state
        WHEN 0 THEN CASE WHEN e.ready OR e.due <= extract(epoch FROM now()) THEN 'pending' ELSE 'waiting' END
        WHEN 1 THEN 'running'
        WHEN 2 THEN 'completed'
        ELSE 'failed'
    END AS status,
    to_timestamp(e.created) AS created_at,
    e.tries AS retry_count,
    (ARRAY['seed', 'link', 'sitemap', 'redirect', 'other', 'listing'])[e.how + 1] AS source_type,
    (SELECT s.url FROM entries s WHERE s.id = e.source) AS source_url,
    CASE WHEN e.state = 1 THEN to_timestamp(e.leased_from / 1000.0) END AS started_at,
    CASE WHEN e.state >= 2 THEN to_timestamp(e.last_fetch) END AS completed_at
FROM entries e JOIN job_queues() j ON j.queue = e.queue;
COMMENT ON VIEW tasks IS 'What jobs have to fetch. Insert job and page to have a page crawled. A worker gets its tasks from Forager, which keeps the pace at each host; here they can be read, added, and deleted while nobody has them';
COMMENT ON COLUMN tasks.id IS 'Its number, which is also that of its page';
COMMENT ON COLUMN tasks.job_id IS 'The job that it belongs to';
COMMENT ON COLUMN tasks.page_id IS 'The page that is fetched';
COMMENT ON COLUMN tasks.path IS 'The path of the page, and the query if there is one';
COMMENT ON COLUMN tasks.status IS 'waiting until it is due, pending, running, completed or failed';
COMMENT ON COLUMN tasks.created_at IS 'When the page was found';
COMMENT ON COLUMN tasks.retry_count IS 'Failures and lost leases in a row';
COMMENT ON COLUMN tasks.source_type IS 'How the page was found: seed, link, sitemap, redirect, listing or other. When a task is inserted, header is a link in the header or navigation of the source page';
COMMENT ON COLUMN tasks.source_url IS 'The page that it was found on, where that is a page of the same job';
COMMENT ON COLUMN tasks.started_at IS 'While it is running: when a worker took it';
COMMENT ON COLUMN tasks.completed_at IS 'When it was fetched last, if it is completed or failed';

CREATE VIEW prioritized_pending_tasks AS
WITH job_config AS (
    SELECT DISTINCT
        j.id as job_id,
        j.prioritization_mode,
        j.total_pages
    FROM jobs j
)
SELECT
    t.id,
    t.job_id,
    t.page_id,
    p.path,
    t.created_at,
    t.retry_count,
    t.source_type,
    t.source_url,
    CASE
        WHEN jc.prioritization_mode = 'fifo' THEN 0
        ELSE COALESCE(p.priority_score, 0.000)
    END as effective_priority
FROM tasks t
JOIN pages p ON t.page_id = p.id
JOIN job_config jc ON t.job_id = jc.job_id
WHERE t.status = 'pending';
COMMENT ON VIEW prioritized_pending_tasks IS 'The tasks that are due, with what orders them: effective_priority descending, then created_at, then id. For reading: whoever locks through it locks every pending task of the job';
COMMENT ON COLUMN prioritized_pending_tasks.id IS 'The number of the task';
COMMENT ON COLUMN prioritized_pending_tasks.job_id IS 'The job that it belongs to';
COMMENT ON COLUMN prioritized_pending_tasks.page_id IS 'The page that is fetched';
COMMENT ON COLUMN prioritized_pending_tasks.path IS 'The path of the page, and the query if there is one';
COMMENT ON COLUMN prioritized_pending_tasks.created_at IS 'When the page was found';
COMMENT ON COLUMN prioritized_pending_tasks.retry_count IS 'Failures and lost leases in a row';
COMMENT ON COLUMN prioritized_pending_tasks.source_type IS 'How the page was found';
COMMENT ON COLUMN prioritized_pending_tasks.source_url IS 'The page that it was found on, where that is a page of the same job';
COMMENT ON COLUMN prioritized_pending_tasks.effective_priority IS 'The score of the page; 0 in mode fifo';
