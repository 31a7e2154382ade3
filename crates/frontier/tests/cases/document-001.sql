-- The SQL of document 001, to the letter: what people who have a task queue of that kind already run.
-- Each part begins with its name.

--- pages
ALTER TABLE pages 
ADD COLUMN priority_score NUMERIC(4,3) DEFAULT 0.000;

--- index
CREATE INDEX idx_pages_priority ON pages(domain_id, priority_score DESC);

--- jobs
ALTER TABLE jobs
ADD COLUMN prioritization_mode TEXT DEFAULT 'hierarchy',
ADD COLUMN total_pages INTEGER DEFAULT 0;

--- view
CREATE OR REPLACE VIEW prioritized_pending_tasks AS
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
    -- Calculate effective priority based on job mode
    CASE 
        WHEN jc.prioritization_mode = 'fifo' THEN 0
        ELSE COALESCE(p.priority_score, 0.000)
    END as effective_priority
FROM tasks t
JOIN pages p ON t.page_id = p.id
JOIN job_config jc ON t.job_id = jc.job_id
WHERE t.status = 'pending';

--- update_page_priority
CREATE OR REPLACE FUNCTION update_page_priority(
    p_page_id INTEGER,
    p_source_type TEXT,
    p_source_page_id INTEGER DEFAULT NULL
) RETURNS VOID AS $$
DECLARE
    v_domain_id INTEGER;
    v_total_pages INTEGER;
    v_path TEXT;
    v_source_priority NUMERIC(4,3);
    v_new_priority NUMERIC(4,3);
BEGIN
    -- Get page details
    SELECT domain_id, path INTO v_domain_id, v_path
    FROM pages
    WHERE id = p_page_id;
    
    -- Get total pages for this domain from any active job
    SELECT COALESCE(MAX(j.total_pages), 0) INTO v_total_pages
    FROM jobs j
    JOIN domains d ON j.domain_id = d.id
    WHERE d.id = v_domain_id
    AND j.status IN ('pending', 'running');
    
    -- Skip if no active jobs (total_pages = 0)
    IF v_total_pages = 0 THEN
        RETURN;
    END IF;
    
    -- Calculate priority based on source
    IF v_path = '/' THEN
        -- Homepage gets maximum priority (1.0)
        v_new_priority := 1.000;
    ELSIF p_source_type = 'sitemap' THEN
        -- Sitemap pages get moderate priority (0.5)
        v_new_priority := 0.500;
    ELSIF p_source_type = 'link' AND p_source_page_id IS NOT NULL THEN
        -- Get source page priority
        SELECT COALESCE(priority_score, 0.000) INTO v_source_priority
        FROM pages
        WHERE id = p_source_page_id;
        
        -- Linked pages inherit 80% of source page priority
        v_new_priority := v_source_priority * 0.8;
        
        -- Ensure minimum priority for linked pages
        IF v_new_priority < 0.100 THEN
            v_new_priority := 0.100;
        END IF;
    ELSE
        -- Default priority
        v_new_priority := 0.100;
    END IF;
    
    -- Update the page priority (only increase, never decrease)
    UPDATE pages
    SET priority_score = GREATEST(priority_score, v_new_priority)
    WHERE id = p_page_id;
END;
$$ LANGUAGE plpgsql;

--- update_job_page_priorities
CREATE OR REPLACE FUNCTION update_job_page_priorities(p_job_id TEXT)
RETURNS VOID AS $$
DECLARE
    v_domain_id INTEGER;
    v_total_pages INTEGER;
BEGIN
    -- Get job details
    SELECT domain_id, total_pages INTO v_domain_id, v_total_pages
    FROM jobs
    WHERE id = p_job_id;
    
    -- Update homepage priority
    UPDATE pages
    SET priority_score = 1.000
    WHERE domain_id = v_domain_id
    AND path = '/';
    
    -- Update sitemap page priorities
    UPDATE pages p
    SET priority_score = 0.500
    FROM tasks t
    WHERE t.page_id = p.id
    AND t.job_id = p_job_id
    AND t.source_type = 'sitemap'
    AND p.path != '/'
    AND p.priority_score < 0.500;
END;
$$ LANGUAGE plpgsql;

--- task_created_update_priority
CREATE OR REPLACE FUNCTION task_created_update_priority()
RETURNS TRIGGER AS $$
DECLARE
    v_source_page_id INTEGER;
BEGIN
    -- Only process for link-discovered pages
    IF NEW.source_type = 'link' AND NEW.source_url IS NOT NULL THEN
        -- Extract source page ID from source_url
        SELECT p.id INTO v_source_page_id
        FROM pages p
        JOIN domains d ON p.domain_id = d.id
        WHERE d.name || p.path = NEW.source_url
        LIMIT 1;
        
        -- Update priority for the new task's page
        IF v_source_page_id IS NOT NULL THEN
            PERFORM update_page_priority(
                NEW.page_id, 
                NEW.source_type, 
                v_source_page_id
            );
        END IF;
    END IF;
    
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;

--- trigger
CREATE TRIGGER trigger_task_priority_update
AFTER INSERT ON tasks
FOR EACH ROW
EXECUTE FUNCTION task_created_update_priority();

--- acquisition, first in first out
SELECT id, job_id, page_id, path, created_at, retry_count, source_type, source_url 
FROM tasks 
WHERE status = 'pending'
AND job_id = $1
ORDER BY created_at ASC
LIMIT 1
FOR UPDATE SKIP LOCKED

--- acquisition, by priority
SELECT id, job_id, page_id, path, created_at, retry_count, source_type, source_url
FROM prioritized_pending_tasks
WHERE job_id = $1
ORDER BY effective_priority DESC, created_at ASC
LIMIT 1
FOR UPDATE SKIP LOCKED
